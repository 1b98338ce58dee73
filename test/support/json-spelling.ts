/** JSON texts as no sane program writes them, for property tests: any white space, any escapes, any strings. */
import fc from "fast-check";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

/** Any text of UTF-16 units, lone surrogates and the characters that make trouble included. */
export const anyText: fc.Arbitrary<string> = fc.string({
  unit: fc.oneof(
    {
      weight: 3,
      arbitrary: fc.constantFrom(
        ...'abc \u00e9\u4e2d"\\/{}[]:,\u0000\n\r\t\b\f\u001b\u001f\u007f\u0085\u2028\u2029\u2027\u0086\ufeff',
      ),
    },
    { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) },
    { weight: 1, arbitrary: fc.constantFrom("\ud83d\ude00", "\ud83d", "\ude00") },
  ),
  maxLength: 12,
});

export const anyJson: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(null, true, false),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    anyText,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(anyText, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

/** Choices by chance that a spelling is made with; the same choices give the same spelling. */
export const anyChoices: fc.Arbitrary<number[]> = fc.array(fc.nat(99), { minLength: 1, maxLength: 60 });

/** One of the many ways to write a value down. */
export function spell(value: Json, choices: readonly number[]): string {
  let n = 0;
  const chance = (percent: number) => (choices[n++ % choices.length] as number) < percent;
  const space = () => (chance(30) ? (chance(50) ? " " : "\n\t \r") : "");
  const text = (value: string) => `"${Array.from(value, (character) => spellCharacter(character, chance)).join("")}"`;
  const write = (value: Json): string => {
    if (typeof value === "string") return text(value);
    if (Array.isArray(value)) return `[${space()}${value.map((item) => `${write(item)}${space()}`).join(`,${space()}`)}]`;
    if (typeof value !== "object" || value === null) return JSON.stringify(value);
    const members = Object.entries(value).map(([name, item]) => `${text(name)}${space()}:${space()}${write(item)}${space()}`);
    return `{${space()}${members.join(`,${space()}`)}}`;
  };
  return space() + write(value) + space();
}

function spellCharacter(character: string, chance: (percent: number) => boolean): string {
  const plain = JSON.stringify(character).slice(1, -1);
  if (character === "/" && chance(50)) return "\\/";
  // Lone surrogates are escaped by JSON.stringify; raw they would not be UTF-8.
  if (!chance(25)) return plain;
  return Array.from({ length: character.length }, (_, n) => {
    const hex = character.charCodeAt(n).toString(16).padStart(4, "0");
    return `\\u${chance(50) ? hex.toUpperCase() : hex}`;
  }).join("");
}
