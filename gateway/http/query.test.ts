import { describe, expect, test } from "vitest";
import { filterOf, limitOf, parseQuery, positionOf, tailOf } from "./query.ts";
import { HeadFields, type RequestHead } from "./request-head.ts";

function keyOf(query: string): string {
  return filterOf(parseQuery(query)).key;
}

function wants(query: string): (event: { kind?: string; stepName?: string | null; correlationId?: string | null }) => boolean {
  const filter = filterOf(parseQuery(query));
  return (event) => filter.key === "" || filter.matches({ kind: "token", stepName: null, correlationId: null, ...event });
}

describe("filters", () => {
  test("a repeated name means either, different names mean both", () => {
    const passes = wants("kinds=token&kinds=log&step_names=train");
    expect(passes({ kind: "token", stepName: "train" })).toBe(true);
    expect(passes({ kind: "log", stepName: "train" })).toBe(true);
    expect(passes({ kind: "token", stepName: "load" })).toBe(false);
    expect(passes({ kind: "token" })).toBe(false);
    expect(passes({ kind: "other", stepName: "train" })).toBe(false);
  });

  test.each([
    "",
    "kinds=",
    "kinds",
    "kinds=%20",
    "kinds=,",
    "kinds=%2C%20,",
    "kind=token",
    "Kinds=token",
    "kinds[]=token",
    "foo=1&&",
  ])("%j filters nothing", (query) => {
    expect(keyOf(query)).toBe("");
  });

  test.each([
    ["foo=&kinds=log", "log"],
    ["%6binds=log", "log"],
    ["kinds=log&", "log"],
    ["kinds=&kinds=log", "log"],
    ["__proto__=x&kinds=token&constructor=1", "token"],
    ["kinds=token,log", "token,log"],
    ["kinds=%zz", "%zz"],
    ["kinds=%C3%A9", "é"],
    ["kinds=\xc3\xa9", "é"],
    ["kinds=%ff", "\ufffd"],
  ])("%j wants the kind %j alone", (query, kind) => {
    const passes = wants(query);
    expect(passes({ kind })).toBe(true);
    expect(passes({ kind: "something else" })).toBe(false);
  });

  test.each([
    ["step_names=load+data", "load data"],
    ["step_names=load%20data", "load data"],
    ["step_names=a%2Bb", "a+b"],
    ["step_names=a%26b", "a&b"],
  ])("%j wants the step %j", (query, stepName) => {
    expect(wants(query)({ stepName })).toBe(true);
    expect(wants(query)({ stepName: "other" })).toBe(false);
  });

  test("five hundred values are as good as one", () => {
    const passes = wants(Array.from({ length: 500 }, (_, n) => `correlation_ids=c${n}`).join("&"));
    expect(passes({ correlationId: "c499" })).toBe(true);
    expect(passes({ correlationId: "c500" })).toBe(false);
  });
});

describe("the position", () => {
  const at = (header: string[] | null, query: string) => {
    const fields = new HeadFields();
    if (header !== null) fields["last-event-id"] = header.length === 1 ? header[0]! : header;
    const head: RequestHead = { method: "GET", path: "/", query, fields };
    return positionOf(head, parseQuery(query));
  };

  test("none, and empty ones, mean none", () => {
    expect(at(null, "")).toBeNull();
    expect(at([""], "")).toBeNull();
    expect(at(null, "since=")).toBeNull();
    expect(at([""], "since=")).toBeNull();
  });

  test("a header was held, a since may be a time", () => {
    expect(at(["5-1"], "")).toEqual({ id: "5-1", exact: true });
    expect(at(null, "since=5-1")).toEqual({ id: "5-1", exact: false });
  });

  test("the header wins over since, and an empty one gives way to it", () => {
    expect(at(["6-0"], "since=5-0")).toEqual({ id: "6-0", exact: true });
    expect(at([""], "since=5-0")).toEqual({ id: "5-0", exact: false });
  });

  test.each(["abc", "5", "5-", "-5", "$", "+", "5-1-2", "5-1\n", "18446744073709551616-0", "٥-٠", " 5-1"])(
    "%j is refused",
    (id) => {
      expect(() => at([id], "")).toThrow(expect.objectContaining({ status: 400 }));
      expect(() => at(null, `since=${encodeURIComponent(id)}`)).toThrow(expect.objectContaining({ status: 400 }));
    },
  );

  test("either twice is refused, even when both are alike", () => {
    expect(() => at(["5-1", "5-1"], "")).toThrow(expect.objectContaining({ status: 400 }));
    expect(() => at(null, "since=5-1&since=5-1")).toThrow(expect.objectContaining({ status: 400 }));
    expect(() => at(["6-0"], "since=5-1&since=5-1")).toThrow(expect.objectContaining({ status: 400 }));
  });
});

describe("numbers", () => {
  test("tail is a count, or nothing", () => {
    expect(tailOf(parseQuery("tail=0"))).toBe(0);
    expect(tailOf(parseQuery("tail=25"))).toBe(25);
    expect(tailOf(parseQuery("tail="))).toBeNull();
    expect(tailOf(parseQuery(""))).toBeNull();
  });

  test("limit is from 1 to 1000, and 256 when it is not given", () => {
    expect(limitOf(parseQuery("limit=1"))).toBe(1);
    expect(limitOf(parseQuery("limit=1000"))).toBe(1000);
    expect(limitOf(parseQuery(""))).toBe(256);
  });

  test.each(["-1", "1.5", "x", "1e3", "0x1", "1 ", "1234567890"])("%j is neither", (text) => {
    const query = parseQuery(`tail=${text}&limit=${text}`);
    expect(() => tailOf(query)).toThrow(expect.objectContaining({ status: 400 }));
    expect(() => limitOf(query)).toThrow(expect.objectContaining({ status: 400 }));
  });

  test.each(["limit=0", "limit=1001", "limit=1&limit=1"])("%s is refused", (query) => {
    expect(() => limitOf(parseQuery(query))).toThrow(expect.objectContaining({ status: 400 }));
  });
});
