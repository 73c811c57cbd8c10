import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { JobtableError } from "../job/errors.js";
import { defineInline, defineTask } from "./definition.js";
import { createTaskRegistry } from "./registry.js";
import { task, type Task, type TaskContext, type TaskOptions } from "./task.js";

const run = (): number => 1;
const inFile = { file: "/tasks/ocr.ts", defaultName: "ocr" };

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof JobtableError && error.code === "invalid_task") return error.message;
    throw error;
  }
  return "accepted";
}

describe("task", () => {
  it("gives back what it got, with types from the schemas", () => {
    const options = { name: "ocr", input: z.object({ n: z.string().transform(Number) }), run };
    expect(task(options)).toBe(options);
    const typed = task({
      name: "ocr",
      input: z.object({ n: z.string().transform(Number), m: z.number().default(1) }),
      output: z.object({ sum: z.number() }),
      run({ n, m }, ctx) {
        expectTypeOf(n).toEqualTypeOf<number>();
        expectTypeOf(ctx).toEqualTypeOf<TaskContext>();
        return { sum: n + m };
      },
    });
    expectTypeOf(typed).toEqualTypeOf<Task<"ocr", { n: number; m: number }, { sum: number }>>();
  });

  it("infers without a name, without schemas, and from annotations", () => {
    const plain = task({ run: (input: { readonly path: string }) => input.path.length });
    expectTypeOf(plain).toEqualTypeOf<TaskOptions<{ readonly path: string }, number>>();
    const later = task({ name: "later", run: async () => Promise.resolve("x") });
    expectTypeOf(later).toEqualTypeOf<Task<"later", unknown, string>>();
    expect([plain, later].map((made) => typeof made.run)).toEqual(["function", "function"]);
  });
});

describe("defineTask", () => {
  it("fills in the defaults of a file", () => {
    const definition = { run };
    expect(defineTask(definition, inFile)).toEqual({
      name: "ocr",
      description: null,
      isolation: "thread",
      timeoutMs: null,
      maxAttempts: 1,
      version: 1,
      file: "/tasks/ocr.ts",
      definition,
    });
  });

  it("reads every option", () => {
    const schema = z.object({});
    const options = { name: "a.b-c_1", description: "d", input: schema, output: schema, run };
    const upgrade = { 2: (input: { n: number }) => ({ m: input.n }) };
    const more = {
      timeout: "5m",
      isolation: "inline",
      maxAttempts: 100,
      version: 3,
      upgrade,
    } as const satisfies Partial<TaskOptions>;
    expect(defineTask({ ...options, ...more }, inFile)).toMatchObject({
      name: "a.b-c_1",
      description: "d",
      timeoutMs: 300_000,
      isolation: "inline",
      maxAttempts: 100,
      version: 3,
    });
    expect(defineTask({ run, timeout: 250 }, inFile).timeoutMs).toBe(250);
  });

  it("takes a function, and an instance of a class", () => {
    expect(defineTask(run, inFile)).toMatchObject({ name: "ocr", definition: { run } });
    class Ocr {
      readonly description = "d";
      run(): number {
        return 1;
      }
    }
    expect(defineTask(new Ocr(), inFile)).toMatchObject({ name: "ocr", description: "d" });
  });

  it.each([
    ["a number", 5, "/tasks/ocr.ts: the default export must be task({ run })"],
    ["null", null, "got null"],
    ["an object without run", { name: "x" }, "got an object"],
    ["a run that is no function", { run: 5 }, "got an object"],
    ["a bad name", { name: "a b", run }, "/tasks/ocr.ts: option name: expected letters"],
    ["a name that is no text", { name: 5, run }, "option name: expected letters"],
    ["an empty name", { name: "", run }, 'got ""'],
    [
      "an unknown option",
      { timeOut: 5, run },
      'task "ocr" (/tasks/ocr.ts): unknown option "timeOut"; known: name,',
    ],
    ["a description", { description: 5, run }, "option description: expected text, got 5"],
    [
      "an input",
      { input: {}, run },
      "option input: expected a Standard Schema (zod, valibot, arktype, ...), got an object",
    ],
    [
      "an output",
      { output: "x", run },
      'option output: expected a Standard Schema (zod, valibot, arktype, ...), got "x"',
    ],
    ["a timeout of 0", { timeout: 0, run }, "option timeout: expected ms above 0"],
    ["a negative timeout", { timeout: -5, run }, "got -5"],
    ["a timeout in weeks", { timeout: "5 weeks", run }, 'got "5 weeks"'],
    ["a timeout of another type", { timeout: true, run }, "got true"],
    [
      "an isolation",
      { isolation: "process", run },
      'option isolation: expected "thread" or "inline", got "process"',
    ],
    [
      "no attempts",
      { maxAttempts: 0, run },
      "option maxAttempts: expected a whole number from 1 to 100, got 0",
    ],
    ["half an attempt", { maxAttempts: 1.5, run }, "got 1.5"],
    ["too many attempts", { maxAttempts: 101, run }, "got 101"],
    ["attempts as text", { maxAttempts: "3", run }, 'got "3"'],
    ["version 0", { version: 0, run }, "option version: expected a whole number from 1 to 1000"],
    [
      "a version raised without an upgrader",
      { version: 2, run },
      "option upgrade: there is none from version 1 to 2; recorded inputs of that version could not run",
    ],
    [
      "a gap between the upgraders",
      { version: 4, upgrade: { 1: run, 3: run }, run },
      "option upgrade: there is none from version 2 to 3",
    ],
    [
      "an upgrader of the version itself",
      { version: 2, upgrade: { 1: run, 2: run }, run },
      'option upgrade: "2" is no version below 2',
    ],
    ["an upgrader of no version", { upgrade: { old: run }, run }, '"old" is no version below 1'],
    [
      "an upgrader that is none",
      { version: 2, upgrade: { 1: "x" }, run },
      'option upgrade.1: expected a function, got "x"',
    ],
    [
      "a list of upgraders",
      { version: 2, upgrade: [run], run },
      "option upgrade: expected functions by the version that each takes, got an array",
    ],
  ])("refuses %s", (_, written, message) => {
    const line = refusal(() => defineTask(written, inFile));
    expect(line).toContain(message);
    expect(line).not.toContain("\n");
  });

  it("refuses a file's name that can't be a task's", () => {
    const line = refusal(() =>
      defineTask(run, { file: "/tasks/my ocr.ts", defaultName: "my ocr" }),
    );
    expect(line).toContain(`/tasks/my ocr.ts: "my ocr" can't be a task's name`);
    expect(line).toContain("rename it, or set the option name");
  });
});

describe("defineInline", () => {
  it("takes named tasks, and tasks and functions by name", () => {
    const listed = defineInline([task({ name: "a", run })]);
    expect(listed).toMatchObject([{ name: "a", file: null, isolation: "inline" }]);
    const named = defineInline({ a: run, b: { run, timeout: "1s" }, c: { name: "d", run } });
    expect(named.map(({ name, timeoutMs }) => [name, timeoutMs])).toEqual([
      ["a", null],
      ["b", 1_000],
      ["d", null],
    ]);
  });

  it("refuses a task without a name, one for a thread, and what is none", () => {
    expect(refusal(() => defineInline([{ run }]))).toContain("needs a name");
    expect(refusal(() => defineInline({ a: { run, isolation: "thread" } }))).toBe(
      'task "a" (given to the library): option isolation: "thread" needs a task file, which a thread can load; a function can only run "inline"',
    );
    expect(refusal(() => defineInline([JSON.parse("5")]))).toContain("got 5");
  });
});

describe("createTaskRegistry", () => {
  it("finds tasks by name and checks their inputs", () => {
    const registry = createTaskRegistry(
      defineInline({ a: { input: z.object({ n: z.number() }), run }, b: run }),
    );
    const [a, b] = [registry.get("a"), registry.get("b")];
    if (a === undefined || b === undefined) throw new Error("not found");
    expect(registry.names).toEqual(["a", "b"]);
    expect(registry.get("toString")).toBeUndefined();
    expect(registry.checkInput(a, {})).toMatchObject({ kind: "invalid", empty: true });
    expect(registry.checkInput(b, 5)).toEqual({ kind: "valid", value: 5 });
    expect(registry.inputJsonSchema(a)).toMatchObject({ type: "object" });
    expect(registry.inputJsonSchema(b)).toEqual({});
  });

  it("names both places of a name given twice", () => {
    const twice = [
      defineTask(run, { file: "/a/ocr.ts", defaultName: "ocr" }),
      defineTask(run, { file: "/b/ocr.ts", defaultName: "ocr" }),
    ];
    expect(refusal(() => createTaskRegistry(twice))).toBe(
      'two tasks are named "ocr": /a/ocr.ts and /b/ocr.ts; give one of them another name',
    );
  });
});
