import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { checkSchema, inputJsonSchema, issuesLine } from "./schema.js";

type Validate = StandardSchemaV1["~standard"]["validate"];
const schemaOf = (validate: Validate): StandardSchemaV1 => ({
  "~standard": { version: 1, vendor: "test", validate },
});
const failing = (...issues: readonly StandardSchemaV1.Issue[]): StandardSchemaV1 =>
  schemaOf(() => ({ issues }));

const image = z.object({
  img_data: z.string().min(1),
  scale: z.number().positive().optional(),
  words: z.array(z.object({ text: z.string() })).optional(),
});

describe("checkSchema", () => {
  it("takes everything where there is no schema", () => {
    expect(checkSchema(undefined, { a: 1 })).toEqual({ kind: "valid", value: { a: 1 } });
  });

  it("answers at once for a schema that does, with what it made of the value", () => {
    const schema = z.object({ n: z.string().transform(Number), m: z.number().default(4) });
    expect(checkSchema(schema, { n: "3" })).toEqual({ kind: "valid", value: { n: 3, m: 4 } });
  });

  it("answers later for a schema that does", async () => {
    const schema = z.object({ n: z.number().refine(async (n) => Promise.resolve(n > 1)) });
    const check = checkSchema(schema, { n: 1 });
    expect(check).toBeInstanceOf(Promise);
    expect(await check).toMatchObject({ kind: "invalid", empty: false, issues: [{ path: "n" }] });
    expect(await checkSchema(schema, { n: 2 })).toEqual({ kind: "valid", value: { n: 2 } });
  });

  it("gives dotted paths", () => {
    const check = checkSchema(image, { img_data: "x", words: [{ text: "a" }, { text: 1 }] });
    expect(check).toMatchObject({ kind: "invalid", issues: [{ path: "words.1.text" }] });
  });

  it("reads path segments that are objects or symbols", () => {
    const schema = failing({ message: "m", path: [{ key: "a" }, { key: 0 }, Symbol("s")] });
    expect(checkSchema(schema, { a: 1 })).toMatchObject({ issues: [{ path: "a.0.Symbol(s)" }] });
  });

  it.each([
    ["nothing", undefined, true],
    ["null", null, true],
    ["empty text", "", true],
    ["an empty object", {}, true],
    ["a missing required input", { scale: 2 }, true],
    ["a required input that is null", { img_data: null }, true],
    ["a required input that is empty", { img_data: "" }, true],
    ["a wrong type", { img_data: 5 }, false],
    ["a missing one and a wrong one", { scale: "x" }, false],
    ["an empty one further down", { img_data: "x", words: [{}] }, false],
    ["an array", [], false],
    ["a number", 7, false],
    ["false", false, false],
  ])("says whether %s is empty input", (_, input, empty) => {
    expect(checkSchema(image, input)).toMatchObject({ kind: "invalid", empty });
  });

  it("does not take an inherited property for an input", () => {
    expect(checkSchema(failing({ message: "m", path: ["toString"] }), { a: 1 })).toMatchObject({
      empty: true,
    });
  });

  it("makes a failed check of a schema that throws, rejects or answers nonsense", async () => {
    const thrown = (): never => {
      throw new TypeError("boom");
    };
    const issues = [{ path: "", message: "the schema itself failed: TypeError: boom" }];
    const broken = { kind: "invalid", empty: false, issues };
    expect(checkSchema(schemaOf(thrown), {})).toEqual(broken);
    expect(
      await checkSchema(
        schemaOf(() => Promise.resolve().then(thrown)),
        {},
      ),
    ).toEqual(broken);
    const nonsense = schemaOf(() => JSON.parse("null") as StandardSchemaV1.Result<unknown>);
    expect(checkSchema(nonsense, 1)).toMatchObject({ kind: "invalid", empty: false });
    expect(checkSchema(failing(), 1)).toMatchObject({ kind: "invalid", issues: [{ path: "" }] });
  });

  it("bounds the list and its texts", () => {
    const issue = { message: "m".repeat(5_000), path: ["p".repeat(5_000)] };
    const check = checkSchema(failing(...Array.from({ length: 1_000 }, () => issue)), 1);
    if (check instanceof Promise || check.kind !== "invalid") throw new Error("expected issues");
    expect(check.issues).toHaveLength(21);
    expect(check.issues.at(-1)).toEqual({ path: "", message: "and 980 more" });
    expect(JSON.stringify(check.issues).length).toBeLessThan(20_000);
  });
});

describe("issuesLine", () => {
  it("is one line", () => {
    const issues = [
      { path: "a.b", message: "x" },
      { path: "", message: "y" },
    ];
    expect(issuesLine(issues)).toBe("a.b: x; y");
  });
});

describe("inputJsonSchema", () => {
  it("is what goes in, not what comes out", () => {
    const schema = z.object({ n: z.string().transform(Number), m: z.number().default(4) });
    expect(inputJsonSchema(schema)).toMatchObject({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      properties: { n: { type: "string" }, m: { type: "number", default: 4 } },
      required: ["n"],
    });
  });

  it("leaves open what JSON Schema can't express", () => {
    expect(inputJsonSchema(z.object({ at: z.date(), s: z.string() }))).toMatchObject({
      properties: { at: {}, s: { type: "string" } },
    });
  });

  it("is empty where the library can't say", () => {
    expect(inputJsonSchema(undefined)).toEqual({});
    expect(inputJsonSchema(failing())).toEqual({});
    const throwing = failing();
    const jsonSchema = {
      input: () => {
        throw new Error("no");
      },
    };
    Object.assign(throwing["~standard"], { jsonSchema });
    expect(inputJsonSchema(throwing)).toEqual({});
    Object.assign(throwing["~standard"], { jsonSchema: { input: () => "text" } });
    expect(inputJsonSchema(throwing)).toEqual({});
  });
});
