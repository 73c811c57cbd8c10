import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TASK_NAME } from "./limits.js";
import { decodePayload, encodePayload, encodePlanPayload, PLAN_TASKS } from "./payload.js";

const PLAN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

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

describe("a plan's payload", () => {
  test("has the documented shape", () => {
    expect(encodePlanPayload(PLAN_ID, "execute")).toBe(
      `{"schema_version":1,"plan_id":"${PLAN_ID}","phase":"execute","extra":{}}`,
    );
  });

  test.each(["execute", "apply"] as const)(
    "is read as one of the task of its phase: %s",
    (phase) => {
      expect(decodePayload(encodePlanPayload(PLAN_ID, phase))).toEqual({
        kind: "payload",
        payload: { task: `plan:${phase}`, version: 1, input: { planId: PLAN_ID, phase } },
      });
    },
  );

  test("what a later writer adds to it without a new version harms nothing", () => {
    const json = `{"schema_version":1,"plan_id":"${PLAN_ID}","phase":"apply","extra":{"a":1},"b":2}`;
    expect(decodePayload(json)).toEqual(decodePayload(encodePlanPayload(PLAN_ID, "apply")));
  });

  test("no user's task can have its task's name, and none's input is taken for it", () => {
    for (const name of Object.values(PLAN_TASKS)) expect(TASK_NAME.test(name)).toBe(false);
    const planLike = encodePlanPayload(PLAN_ID, "apply");
    expect(decodePayload(encodePayload("ocr", planLike))).toMatchObject({
      payload: { task: "ocr", input: { plan_id: PLAN_ID } },
    });
    expect(decodePayload(`{"task":"ocr","input":1,${planLike.slice(1)}`)).toMatchObject({
      payload: { task: "ocr", input: 1 },
    });
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
    ["a plan of no version", `{"plan_id":"${PLAN_ID}","phase":"apply"}`, /schema_version/],
    [
      "a plan of a newer version, whatever else is in it",
      '{"schema_version":2,"plan_id":{"of":"later"}}',
      /^UnreadablePayload: the plan's version 2 is newer than this worker's \(1\): upgrade the worker$/,
    ],
    ["a plan's id with its prefix", plan(`"plan_${PLAN_ID}"`, '"apply"'), /plan_id is not a ULID/],
    ["a plan's id that is none", plan("null", '"apply"'), /plan_id is not a ULID/],
    ["a phase that is none", plan(`"${PLAN_ID}"`, '"Apply"'), /phase is neither/],
    ["a plan without a phase", `{"schema_version":1,"plan_id":"${PLAN_ID}"}`, /phase is neither/],
  ];
  test.each(cases)("%s", (_, json, reason) => {
    const decoded = decodePayload(json);
    expect(decoded.kind).toBe("unreadable");
    const message = decoded.kind === "unreadable" ? decoded.errorMessage : "";
    expect(message).toMatch(/^UnreadablePayload: /);
    expect(message).toMatch(reason);
  });
});

function plan(planId: string, phase: string): string {
  return `{"schema_version":1,"plan_id":${planId},"phase":${phase},"extra":{}}`;
}
