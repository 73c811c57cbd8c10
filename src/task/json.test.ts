import fc from "fast-check";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { MAX_JSON_DEPTH, ResultNotSerializable, encodeJson } from "./json.js";

const MB = 1024 * 1024;
const encode = (value: unknown, maxBytes = MB): string => encodeJson(value, "result", maxBytes);
function refusal(value: unknown, maxBytes = MB): string {
  try {
    encode(value, maxBytes);
  } catch (error) {
    if (error instanceof ResultNotSerializable) return `${error.name}: ${error.message}`;
    throw error;
  }
  return "accepted";
}

class Point {
  constructor(readonly x = 1) {}
}
class Shown {
  toJSON(): unknown {
    return { shown: [1] };
  }
}

describe("encodeJson", () => {
  it("writes any JSON value as JSON.stringify does", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(encode(value)).toBe(JSON.stringify(value));
      }),
    );
  });

  it.each([
    ["undefined at the top is null", undefined, "null"],
    ["undefined in an object is left out", { a: undefined, b: 1 }, '{"b":1}'],
    ["undefined in an array is null", [1, undefined], "[1,null]"],
    ["a Date is its ISO text", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["a Date in an array", [1, new Date(0), 2], '[1,"1970-01-01T00:00:00.000Z",2]'],
    ["toJSON is asked", { a: 1, s: new Shown(), z: 2 }, '{"a":1,"s":{"shown":[1]},"z":2}'],
    ["a lone surrogate is escaped", "\ud800", '"\\ud800"'],
    ["NUL is escaped", "a\0b", '"a\\u0000b"'],
    [
      "an object without prototype",
      Object.assign(Object.create(null) as object, { a: 1 }),
      '{"a":1}',
    ],
    ["an object of another realm", runInNewContext("({ a: [1] })"), '{"a":[1]}'],
    ["a key named __proto__ survives a copy", JSON.parse('{"__proto__":1}'), '{"__proto__":1}'],
    [
      "the same object twice is no circle",
      (() => {
        const o = {};
        return [o, o];
      })(),
      "[{},{}]",
    ],
    ["-0 is 0", -0, "0"],
    ["false stays", false, "false"],
  ])("%s", (_, value, json) => {
    expect(encode(value)).toBe(json);
  });

  it.each([
    ["result is a BigInt", 1n],
    ["result.words.0 is a BigInt", { words: [1n] }],
    ["result.a is NaN", { a: Number.NaN }],
    ["result.a is -Infinity", { a: Number.NEGATIVE_INFINITY }],
    ["result is a Map", new Map()],
    ["result.s is a Set", { s: new Set() }],
    ["result.f is a function", { f: () => 1 }],
    ["result.s is a symbol", { s: Symbol("x") }],
    ["result.p is a Point", { p: new Point() }],
    ["result.e is an Error", { e: new Error("x") }],
    ["result is a Promise (await it)", Promise.resolve(1)],
    ["result.d is an invalid Date", { d: new Date(Number.NaN) }],
    ["result.b is a Buffer; encode it, for example as base64", { b: Buffer.from("x") }],
    ["result.b is a Float32Array; encode it, for example as base64", { b: new Float32Array(1) }],
    ["result.b is an ArrayBuffer; encode it, for example as base64", { b: new ArrayBuffer(1) }],
    ["result.n is a Number", { n: Object(1) as object }],
    ["result.t.toJSON() is a BigInt", { t: { toJSON: () => 1n } }],
  ])("refuses: %s", (message, value) => {
    expect(refusal(value)).toBe(`ResultNotSerializable: ${message}`);
  });

  it("names where a circle closes", () => {
    const node: Record<string, unknown> = { list: [] };
    (node["list"] as unknown[]).push({ parent: node });
    expect(refusal(node)).toBe("ResultNotSerializable: result.list.0.parent is circular");
    const self = { toJSON: () => self };
    expect(refusal(self)).toContain("whose toJSON returns itself");
  });

  it("refuses what is too deep, and takes what is just deep enough", () => {
    const nested = (depth: number): unknown =>
      Array.from({ length: depth }).reduce((inner) => [inner], 1);
    expect(encode(nested(MAX_JSON_DEPTH))).toHaveLength(2 * MAX_JSON_DEPTH + 1);
    expect(refusal(nested(MAX_JSON_DEPTH + 1))).toContain("nested deeper than 500 levels");
  });

  it("looks at no more of a value than may be large enough", () => {
    expect(refusal(new Array(2 ** 32 - 1))).toContain("larger than");
  });

  it("writes an array as it stands, whatever its iterator gives", () => {
    const odd = Object.assign([Number.NaN], { [Symbol.iterator]: () => [1][Symbol.iterator]() });
    expect(refusal(odd)).toContain("result.0 is NaN");
  });

  it("refuses what is too large, by bytes, to the byte", () => {
    expect(encode("é".repeat(4), 10)).toBe('"éééé"');
    expect(refusal("é".repeat(4), 9)).toContain("result is larger than 9 bytes");
    expect(
      refusal(
        Array.from({ length: 2_000 }, () => 0),
        1_000,
      ),
    ).toContain("larger than 1000");
  });

  it("refuses shared parts that would explode, before it makes their text", () => {
    let doubled: unknown = "x".repeat(100);
    for (let level = 0; level < 60; level += 1) doubled = [doubled, doubled];
    expect(refusal(doubled)).toContain("larger than");
  });

  it("turns a hostile value into a refusal", () => {
    const hostile = {
      get a(): never {
        throw new Error("no");
      },
    };
    expect(refusal(hostile)).toContain("result can't be read");
    const proxy: unknown = new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error("no");
        },
      },
    );
    expect(refusal({ proxy })).toContain("result.proxy can't be read");
  });
});
