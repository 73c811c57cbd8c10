import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodePayload, encodePayload } from "./payload.js";

describe("encodePayload", () => {
  test("writes the documented shape, and the input as it was given", () => {
    expect(encodePayload("ocr", '{ "a":1.0 }')).toBe(
      '{"schema_version":1,"task":"ocr","input":{ "a":1.0 }}',
    );
    expect(encodePayload("ocr", "[]", 7)).toBe('{"schema_version":7,"task":"ocr","input":[]}');
  });

  test("every JSON input comes back, with its version", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.json(),
        fc.integer({ min: 0 }),
        (task, inputJson, version) => {
          expect(decodePayload(encodePayload(task, inputJson, version))).toEqual({
            kind: "payload",
            payload: { task, version, input: JSON.parse(inputJson) as unknown },
          });
        },
      ),
      { seed: 1, numRuns: 300 },
    );
  });

  test("keys named like properties stay keys", () => {
    const decoded = decodePayload(encodePayload("ocr", '{"__proto__":{"x":1},"constructor":2}'));
    const input = decoded.kind === "payload" ? decoded.payload.input : undefined;
    expect(JSON.stringify(input)).toBe('{"__proto__":{"x":1},"constructor":2}');
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });
});

describe("decodePayload refuses, with a reason", () => {
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ["text that is not JSON", "{", /not JSON/],
    ["nothing", "", /not JSON/],
    ["an array", "[1]", /not an object/],
    ["null", "null", /not an object/],
    ["a string", '"x"', /not an object/],
    ["no version", '{"task":"ocr"}', /schema_version/],
    ["a version as text", '{"schema_version":"1","task":"ocr"}', /schema_version/],
    ["a fraction", '{"schema_version":1.5,"task":"ocr"}', /schema_version/],
    ["a negative version", '{"schema_version":-1,"task":"ocr"}', /schema_version/],
    ["no task", '{"schema_version":1}', /task is not a string/],
    ["a task that is no text", '{"schema_version":1,"task":7}', /task is not a string/],
  ];
  test.each(cases)("%s", (_, json, reason) => {
    const decoded = decodePayload(json);
    expect(decoded.kind).toBe("unreadable");
    const message = decoded.kind === "unreadable" ? decoded.errorMessage : "";
    expect(message).toMatch(/^UnreadablePayload: /);
    expect(message).toMatch(reason);
  });
});
