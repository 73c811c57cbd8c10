import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decodePayload, encodePayload, PAYLOAD_VERSION, type PayloadUpgrader } from "./payload.js";

describe("encodePayload", () => {
  test("writes the documented shape, and the input as it was given", () => {
    expect(encodePayload("ocr", '{ "a":1.0 }')).toBe(
      '{"schema_version":1,"task":"ocr","input":{ "a":1.0 }}',
    );
  });

  test("every JSON input comes back", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.json(), (task, inputJson) => {
        const decoded = decodePayload(encodePayload(task, inputJson));
        expect(decoded).toEqual({
          kind: "payload",
          payload: { task, input: JSON.parse(inputJson) as unknown },
        });
      }),
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
    ["version 0", '{"schema_version":0,"task":"ocr"}', /schema_version/],
    ["a newer version", '{"schema_version":2,"task":"ocr"}', /2 is newer .*\(1\).*upgrade/],
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

describe("upgraders", () => {
  const rename: PayloadUpgrader = ({ name, ...rest }) => ({ ...rest, task: name });
  const wrap: PayloadUpgrader = ({ input, ...rest }) => ({ ...rest, input: { image: input } });
  const upgraders = new Map([
    [1, rename],
    [2, wrap],
  ]);

  test("each is applied in turn, from the payload's version to the code's", () => {
    const v1 = '{"schema_version":1,"name":"ocr","input":"img"}';
    const v2 = '{"schema_version":2,"task":"ocr","input":"img"}';
    const v3 = '{"schema_version":3,"task":"ocr","input":{"image":"img"}}';
    for (const json of [v1, v2, v3])
      expect(decodePayload(json, upgraders, 3)).toEqual({
        kind: "payload",
        payload: { task: "ocr", input: { image: "img" } },
      });
  });

  test("a gap between them is named", () => {
    const decoded = decodePayload('{"schema_version":1,"name":"x"}', new Map([[1, rename]]), 3);
    expect(decoded).toEqual({
      kind: "unreadable",
      errorMessage: "UnreadablePayload: no upgrader is registered for schema_version 2",
    });
  });

  test("one that throws makes the payload unreadable, not the caller fail", () => {
    const broken = new Map<number, PayloadUpgrader>([
      [
        1,
        () => {
          throw new TypeError("no such field");
        },
      ],
    ]);
    expect(decodePayload('{"schema_version":1}', broken, 2)).toEqual({
      kind: "unreadable",
      errorMessage: "UnreadablePayload: the upgrader of schema_version 1 failed: no such field",
    });
  });

  test("the present version needs none", () => {
    expect(decodePayload(encodePayload("ocr", "1"), new Map(), PAYLOAD_VERSION).kind).toBe(
      "payload",
    );
  });
});
