import { InvalidArgumentError, Option } from "commander";

export function wholeNumberOption(flags: string, about: string, min: number, max: number, preset?: number): Option {
  const option = new Option(flags, about).argParser((text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) throw new InvalidArgumentError(`Write a whole number from ${min} to ${max}.`);
    return value;
  });
  return preset === undefined ? option : option.default(preset);
}

/** Fractions are welcome. */
export function secondsOption(flags: string, about: string, preset?: number): Option {
  const option = new Option(flags, about).argParser((text) => {
    const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
    if (!(value <= 86_400 * 365)) throw new InvalidArgumentError("Write a number of seconds.");
    return value;
  });
  return preset === undefined ? option : option.default(preset);
}
