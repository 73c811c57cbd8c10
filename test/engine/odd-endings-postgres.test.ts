/**
 * What a handler may throw, return or say that is hard to write down: on each kind of store the job
 * ends, its mates are not harmed, and what is kept is the same.
 */
import { describe, expect, test } from "vitest";
import type { Engine } from "../../src/engine/api.js";
import type { Logger } from "../../src/runtime/logger.js";
import type { TaskContext, TaskOptions } from "../../src/task/task.js";
import { submitted } from "../engine-rig.js";
import { STORES, withTwoEngines } from "./stores.js";

const LONE = "\ud83d";
const HOSTILE = `a\0b${LONE}c \u2028 é 👩‍👩‍👧 '); DROP TABLE async_jobs; --`;
/** In a column: no NUL, no half of a pair. */
const CLEANED = HOSTILE.replace("\0", "\ufffd").replace(LONE, "\ufffd");

const everythingThrows: unknown = new Proxy(
  {},
  {
    get: () => {
      throw new Error("get");
    },
    has: () => {
      throw new Error("has");
    },
    getPrototypeOf: () => {
      throw new Error("prototype");
    },
    ownKeys: () => {
      throw new Error("keys");
    },
  },
);

const circular: Record<string, unknown> = {};
circular["self"] = circular;

/** By what is thrown: what is kept. */
const THROWN: readonly (readonly [name: string, thrown: unknown, kept: string])[] = [
  ["an error", new TypeError("bad"), "TypeError: bad"],
  ["an error without a message", new Error(""), "Error: no message"],
  ["a hostile message", new Error(HOSTILE), `Error: ${CLEANED}`],
  ["text", "plain", "Error: plain"],
  ["hostile text", HOSTILE, `Error: ${CLEANED}`],
  ["empty text", "", "Error: no message"],
  ["null", null, "Error: null"],
  ["nothing", undefined, "Error: undefined"],
  ["a number", 42, "Error: 42"],
  ["NaN", Number.NaN, "Error: NaN"],
  ["a BigInt", 10n, "Error: 10"],
  ["a symbol", Symbol("s"), "Error: Symbol(s)"],
  ["a plain object", { code: 7 }, 'Error: {"code":7}'],
  [
    "what can't be looked at",
    everythingThrows,
    "Error: a value of type object that can't be shown",
  ],
];

/** By what is returned: what the error begins with. */
const RETURNED: readonly (readonly [name: string, value: unknown, kept: RegExp])[] = [
  ["a BigInt", { n: 1n }, /^ResultNotSerializable: result\.n is a BigInt$/],
  ["NaN", Number.NaN, /^ResultNotSerializable: result is NaN$/],
  ["a Map", new Map(), /^ResultNotSerializable: result is a Map$/],
  ["a circle", circular, /^ResultNotSerializable: result\.self is circular$/],
  ["what can't be looked at", everythingThrows, /^Error: get$/],
];

const HOW: Readonly<Record<string, (thrown: unknown) => unknown>> = {
  "thrown at once": (thrown) => {
    throw thrown;
  },
  "rejected later": async (thrown) => {
    await Promise.resolve();
    throw thrown;
  },
};

async function ended(engine: Engine, input: unknown) {
  const jobId = await submitted({ engine }, "odd", {}, input);
  return engine.wait(jobId, { timeoutMs: 60_000, until: "end" });
}

describe.each(Object.entries(STORES))("%s", (_, newStore) => {
  test("every ending is recorded, with a message, and the next job runs", async () => {
    const odd: TaskOptions = {
      name: "odd",
      run: (input) => {
        const { how, at } = input as { how: string; at: number };
        const act = HOW[how];
        return act === undefined ? RETURNED[at]?.[1] : act(THROWN[at]?.[1]);
      },
    };
    await withTwoEngines(newStore, [odd], async (taking, running) => {
      for (const how of Object.keys(HOW))
        for (const [at, [name, , kept]] of THROWN.entries())
          expect(await ended(taking, { how, at }), `${how}: ${name}`).toMatchObject({
            status: "failed",
            errorMessage: kept,
          });
      for (const [at, [name, , kept]] of RETURNED.entries()) {
        const job = await ended(taking, { how: "returned", at });
        expect(job?.status, name).toBe("failed");
        expect(job?.errorMessage).toMatch(kept);
      }
      expect(await taking.counts()).toMatchObject({ queued: 0, running: 0 });
      expect(running.health()).toMatchObject({
        busy: 0,
        processed: 0,
        failed: 2 * THROWN.length + RETURNED.length,
        ledgerFault: null,
      });
    });
  });

  test("NUL and halves of pairs come back as they were in JSON, and cleaned elsewhere", async () => {
    const logged: string[] = [];
    const log = (_fields: unknown, message: string): void => void logged.push(message);
    const logger: Logger = { debug: log, info: log, warn: log, error: log };
    const odd: TaskOptions = {
      name: "odd",
      run: (input: unknown, { progress, log: { info } }: TaskContext) => {
        progress({ said: HOSTILE });
        info(HOSTILE, { said: HOSTILE });
        return input;
      },
    };
    await withTwoEngines(
      newStore,
      [odd],
      async (engine) => {
        const input = { [HOSTILE]: HOSTILE };
        const result = await engine.submit({ task: "odd", input, requestId: HOSTILE });
        if (result.kind !== "accepted") throw new Error(result.kind);
        const { jobId } = result.job;
        const job = await engine.wait(jobId, { timeoutMs: 60_000, until: "end" });
        expect(job).toMatchObject({ status: "succeeded", requestId: CLEANED, errorMessage: null });
        expect(JSON.parse(job?.progressJson ?? "")).toEqual({ said: HOSTILE });
        expect(JSON.parse((await engine.result(jobId))?.resultJson ?? "")).toEqual(input);
        expect(logged).toContain(CLEANED);
        expect(await engine.submit({ task: HOSTILE, input: 1 })).toMatchObject({
          kind: "unknown_task",
        });
      },
      { logger },
    );
  });
});
