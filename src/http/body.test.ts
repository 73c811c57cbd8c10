import { describe, expect, test } from "vitest";
import { MAX_JSON_DEPTH, parseBody, readObject, withoutRequestId } from "./body.js";

const parse = (text: string | Buffer, encoding?: string): ReturnType<typeof parseBody> =>
  parseBody(Buffer.from(text), encoding);

describe("parseBody", () => {
  test.each(["{}", "[]", "null", "7", '"text"', '{"a":{"b":[1,2,{"c":null}]}}', '{"a":1,"a":2}'])(
    "takes %s",
    (text) => {
      expect(parse(text)).toEqual({ kind: "json", value: JSON.parse(text) as unknown });
    },
  );

  test("takes an empty body for none", () => {
    expect(parse("")).toEqual({ kind: "json", value: undefined });
  });

  test("keeps NUL characters and lone surrogates for the task to judge", () => {
    expect(parse('{"a":"\\u0000\\ud800"}')).toEqual({
      kind: "json",
      value: { a: "\0\ud800" },
    });
  });

  test.each([
    ["not json", "not valid JSON"],
    ["{", "JSON"],
    ['{"__proto__":{"admin":true}}', "__proto__"],
    ['{"a":[{"\\u005f_proto__":1}]}', "__proto__"],
    ['{"constructor":{"prototype":{}}}', "constructor.prototype"],
    ['{"a":1e999}', "too large"],
    ["[".repeat(100_000) + "]".repeat(100_000), "nested deeper"],
    ['{"a":'.repeat(100_000) + "1" + "}".repeat(100_000), "nested deeper"],
  ])("refuses %.40s", (text, reason) => {
    expect(parse(text)).toMatchObject({
      kind: "refused",
      problem: { fault: "bad_json", detail: expect.stringContaining(reason) as unknown },
    });
  });

  test("takes a constructor that is plain data", () => {
    expect(parse('{"constructor":"ACME","b":{"constructor":{"name":1}}}').kind).toBe("json");
  });

  test("nesting is taken up to the limit and no further", () => {
    const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
    expect(parse(nested(MAX_JSON_DEPTH)).kind).toBe("json");
    expect(parse(nested(MAX_JSON_DEPTH + 1)).kind).toBe("refused");
  });

  test("bytes that are not UTF-8 are refused, not replaced", () => {
    expect(parse(Buffer.from([0x22, 0xff, 0x22]))).toMatchObject({
      problem: { fault: "bad_json", detail: "the body is not valid UTF-8" },
    });
  });

  test("a compressed body is not taken for JSON", () => {
    expect(parse("{}", "gzip")).toMatchObject({ problem: { fault: "media_type" } });
    expect(parse("{}", "identity").kind).toBe("json");
  });
});

describe("readObject", () => {
  test.each([
    [undefined, "bad_json", "empty"],
    [null, "invalid_input", "not null"],
    [[], "invalid_input", "not an array"],
    [7, "invalid_input", "not a number"],
    ["x", "invalid_input", "not a string"],
    [{ req_id: 7 }, "invalid_input", "req_id: must be a string"],
    [{ req_id: null }, "invalid_input", "req_id: must be a string"],
    [{ req_id: "x".repeat(201) }, "invalid_input", "at most 200"],
  ])("refuses %j", (body, fault, reason) => {
    expect(readObject(body)).toMatchObject({
      kind: "refused",
      problem: { fault, detail: expect.stringContaining(reason) as unknown },
    });
  });

  test("gives the id apart, which is not part of the input", () => {
    const body = { req_id: "r", a: 1 };
    expect(readObject(body)).toEqual({ kind: "object", body, requestId: "r" });
    expect(withoutRequestId(body)).toEqual({ a: 1 });
    expect(body).toEqual({ req_id: "r", a: 1 });
    expect(readObject({ req_id: "" })).toMatchObject({ requestId: "" });
  });
});
