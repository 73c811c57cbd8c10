import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodePayload } from "../job/payload.js";
import { canonicalJson, fingerprintOf } from "./fingerprint.js";

describe("the canonical form", () => {
  test("is that of RFC 8785's own example", () => {
    const input: unknown = JSON.parse(`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\"\\/",
      "literals": [null, true, false]
    }`);
    expect(canonicalJson(input)).toBe(
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    );
  });

  test("orders keys by UTF-16 units, not by code points", () => {
    const keys = ["\u20ac", "\r", "\ufb33", "1", "\ud83d\ude00", "\u0080", "\u00f6"];
    const input = Object.fromEntries(keys.map((key) => [key, 0]));
    expect(Object.keys(JSON.parse(canonicalJson(input)) as object)).toEqual([
      "1",
      "\r",
      "\u0080",
      "\u00f6",
      "\u20ac",
      "\ud83d\ude00",
      "\ufb33",
    ]);
  });

  test("says the same as the value, whatever it is", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.stringify(value);
        expect(JSON.parse(canonicalJson(JSON.parse(json)))).toEqual(JSON.parse(json));
      }),
      { seed: 1, numRuns: 300 },
    );
  });
});

describe("the fingerprint", () => {
  const of = (task: string, inputJson: string, version = 1): string =>
    fingerprintOf(encodePayload(task, inputJson, version));

  test("is the same for the same task and input, however written, and in every version", () => {
    const one = of("ocr", '{"a":1,"b":{"c":[1.0],"d":"\\u0041"}}');
    expect(one).toMatch(/^[0-9a-f]{64}$/);
    expect(of("ocr", '{ "b": {"d":"A", "c":[1]}, "a": 1e0 }')).toBe(one);
    expect(of("ocr", '{"a":1,"b":{"c":[1.0],"d":"\\u0041"}}', 2)).toBe(one);
  });

  test.each([
    ["asr", '{"a":1}'],
    ["ocr", '{"a":2}'],
    ["ocr", '{"a":"1"}'],
    ["ocr", '{"a":1,"__proto__":{}}'],
    ["ocr", "[]"],
  ])("is another for %s %s", (task, inputJson) => {
    expect(of(task, inputJson)).not.toBe(of("ocr", '{"a":1}'));
  });
});
