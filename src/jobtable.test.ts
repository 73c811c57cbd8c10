import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import {
  createJobtable,
  formatJobId,
  JobtableError,
  task,
  TaskFailed,
  type JobOf,
  type Outcome,
  type TaskContext,
} from "./index.js";
import { openLedger } from "./compose.js";
import { silentLogger } from "./runtime/logger.js";

const double = task({
  name: "double",
  input: z.object({ n: z.number() }),
  run: ({ n }) => ({ twice: 2 * n }),
});
const broken = task({
  name: "broken",
  run: (): string => {
    throw new RangeError("out of paper");
  },
});
const never = task({
  name: "never",
  timeout: 20,
  run: (_input: unknown, { signal }) =>
    new Promise<string>((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        reject(new Error("told to stop"));
      });
    }),
});

function signalled(): { readonly reached: Promise<void>; readonly reach: () => void } {
  let reach: () => void = () => undefined;
  const reached = new Promise<void>((resolve) => (reach = resolve));
  return { reached, reach };
}

async function withJobtable(
  use: (jobtable: ReturnType<typeof create>) => Promise<void>,
): Promise<void> {
  const jobtable = create();
  try {
    await use(jobtable);
  } finally {
    await jobtable.stop();
  }
}

function create() {
  return createJobtable({ store: "memory", tasks: [double, broken, never], asyncMaxQueue: 2 });
}

describe("the library", () => {
  test("runs jobs and gives back typed outputs", async () => {
    await withJobtable(async (jobtable) => {
      await jobtable.start();
      const job = await jobtable.submit("double", { n: 21 }, { requestId: "r1" });
      const { jobId } = job;
      const ended = await jobtable.wait(formatJobId(jobId));
      expect(ended).toMatchObject({ status: "succeeded", requestId: "r1" });
      const result = await jobtable.result(job);
      expectTypeOf(result).toEqualTypeOf<Outcome<{ twice: number }> | null>();
      expect(result?.output?.twice).toBe(42);
      expect(await jobtable.get(jobId)).toMatchObject({ jobId });
      expect((await jobtable.list()).jobs.length).toBe(1);
      expect(await jobtable.counts()).toMatchObject({ total: 1, queued: 0, running: 0 });
      expect(await jobtable.health()).toMatchObject({ state: "running", processed: 1 });
      expect(await jobtable.cancel(jobId)).toMatchObject({ kind: "terminal" });
      const named = await jobtable.result(formatJobId(jobId), "double");
      expectTypeOf(named).toEqualTypeOf<Outcome<{ twice: number }> | null>();
      expect(named).toEqual(result);
      await expect(jobtable.result(jobId, "broken")).rejects.toMatchObject({
        code: "invalid_input",
        message: `invalid input: ${formatJobId(jobId)} is a job of task "double", not of "broken"`,
      });
      const unnamed = await jobtable.result(jobId);
      expectTypeOf(unnamed).toEqualTypeOf<Outcome<unknown> | null>();
      expect(unnamed).toEqual(result);
      const failing = await jobtable.submit("broken", null);
      expect(await jobtable.wait(failing.jobId)).toMatchObject({
        status: "failed",
        errorMessage: "RangeError: out of paper",
      });
      expect((await jobtable.result(failing.jobId))?.output).toBeUndefined();
    });
  });

  test("records many jobs in one step or none, each with its type", async () => {
    await withJobtable(async (jobtable) => {
      await jobtable.start();
      const jobs = await jobtable.submitMany([
        { task: "double", input: { n: 1 }, priority: 3 },
        { task: "broken", input: null },
      ]);
      expectTypeOf(jobs).toEqualTypeOf<[JobOf<"double">, JobOf<"broken">]>();
      const [double, broken] = jobs;
      expect([double.task, double.priority, broken.task]).toEqual(["double", 3, "broken"]);
      await jobtable.wait(double);
      expect((await jobtable.result(double))?.output).toEqual({ twice: 2 });
      expect(await jobtable.wait(broken)).toMatchObject({ status: "failed" });
      const list = [1, 2].map((n) => ({ task: "double" as const, input: { n } }));
      const more = await jobtable.submitMany(list);
      expectTypeOf(more).toEqualTypeOf<JobOf<"double">[]>();
      for (const job of more) await jobtable.wait(job);
      const wrong: unknown = { n: "x" };
      await expect(
        jobtable.submitMany([...list, { task: "double", input: wrong as { n: number } }]),
      ).rejects.toMatchObject({
        code: "invalid_input",
        message: expect.stringMatching(/^\[2\]: invalid input: n: /) as string,
      });
      await expect(jobtable.submitMany([...list, ...list])).rejects.toMatchObject({
        code: "invalid_input",
        message: expect.stringContaining(
          "4 jobs at once are more than async_max_queue (2)",
        ) as string,
      });
      expect(await jobtable.counts()).toMatchObject({ total: 4 });
    });
  });

  test("F39: one key is one job, and another input of it a conflict", async () => {
    await withJobtable(async (jobtable) => {
      const submit = (n: number) => jobtable.submit("double", { n }, { idempotencyKey: "k" });
      const [one, other] = await Promise.all([submit(1), submit(1)]);
      expect(other.jobId).toBe(one.jobId);
      await expect(submit(2)).rejects.toMatchObject({
        code: "key_conflict",
        message: `idempotency key "k" belongs to ${formatJobId(one.jobId)}, of another task or input`,
      });
    });
  });

  test("F24: runs a cancelled job again, on disk also one that had started", async () => {
    const folder = await mkdtemp(join(tmpdir(), "jobtable-library-"));
    const [started, released] = [signalled(), signalled()];
    const until = task({
      name: "until",
      async run(given: string, { signal }: TaskContext) {
        const told = new Promise<string>((resolve) => {
          signal.addEventListener("abort", () => {
            resolve("stopped");
          });
        });
        started.reach();
        return { given, ended: await Promise.race([told, released.reached.then(() => "done")]) };
      },
    });
    const jobtable = createJobtable({ store: `sqlite:${join(folder, "jobs.db")}`, tasks: [until] });
    try {
      await jobtable.start();
      const { jobId } = await jobtable.submit("until", "input");
      await started.reached;
      await jobtable.cancel(jobId);
      expect(await jobtable.wait(jobId)).toMatchObject({ status: "cancelled" });
      const key = { idempotencyKey: "again" };
      const again = await jobtable.retry(formatJobId(jobId), key);
      if (again.kind !== "accepted") throw new Error(again.kind);
      released.reach();
      expect(await jobtable.wait(again.job.jobId)).toMatchObject({ status: "succeeded" });
      const result = await jobtable.result(again.job, "until");
      expect(result?.output).toEqual({ given: "input", ended: "done" });
      expect(await jobtable.retry(jobId, key)).toMatchObject({
        repeated: true,
        job: { jobId: again.job.jobId },
      });
      await expect(jobtable.retry(jobId, { idempotencyKey: "" })).rejects.toMatchObject({
        code: "invalid_input",
      });
      expect(await jobtable.retry("nonsense")).toEqual({ kind: "unknown" });
    } finally {
      await jobtable.stop();
      await rm(folder, { recursive: true });
    }
  });

  test("runs a task without a record", async () => {
    await withJobtable(async (jobtable) => {
      const output: { twice: number } = await jobtable.run("double", { n: 4 });
      expect(output).toEqual({ twice: 8 });
      await expect(jobtable.run("broken", null)).rejects.toEqual(
        new TaskFailed("failed", "RangeError: out of paper"),
      );
      await expect(jobtable.run("never", null)).rejects.toMatchObject({
        name: "TaskFailed",
        outcome: "timeout",
        message: "TimeLimit: exceeded 20 ms",
      });
      await expect(
        jobtable.run("never", null, { signal: AbortSignal.abort() }),
      ).rejects.toMatchObject({ outcome: "cancelled" });
    });
  });

  test("says with a code what was wrong", async () => {
    await withJobtable(async (jobtable) => {
      const wrong: unknown = { n: "x" };
      await expect(jobtable.submit("double", wrong as { n: number })).rejects.toMatchObject({
        code: "invalid_input",
        message: expect.stringMatching(/^invalid input: n: /) as string,
      });
      await expect(jobtable.submit("other" as "double", { n: 1 })).rejects.toMatchObject({
        code: "unknown_task",
        message: 'unknown task "other"; known: double, broken, never',
      });
      await jobtable.submit("double", { n: 1 });
      await jobtable.submit("double", { n: 2 });
      await expect(jobtable.submit("double", { n: 3 })).rejects.toMatchObject({
        code: "queue_full",
        message: "queue full (max 2); try again in 1 s",
      });
      expect(await jobtable.get("nonsense")).toBeNull();
      expect(await jobtable.wait("nonsense")).toBeNull();
      expect(await jobtable.result("nonsense")).toBeNull();
      expect(await jobtable.cancel("nonsense")).toEqual({ kind: "unknown" });
    });
  });

  test("lists page by page, with cursors in both spellings, and refuses what is none", async () => {
    await withJobtable(async (jobtable) => {
      const first = await jobtable.submit("double", { n: 1 });
      const second = await jobtable.submit("double", { n: 2 });
      const page = await jobtable.list({ limit: 1 });
      expect(page.jobs.map(({ jobId }) => jobId)).toEqual([second.jobId]);
      for (const cursor of [second.jobId, formatJobId(second.jobId)]) {
        const rest = await jobtable.list({ cursor, limit: 1_000 });
        expect(rest.jobs.map(({ jobId }) => jobId)).toEqual([first.jobId]);
      }
      for (const cursor of ["", "nonsense", `${second.jobId} `, `plan_${second.jobId}`])
        await expect(jobtable.list({ cursor })).rejects.toMatchObject({
          code: "invalid_input",
          message: "invalid input: cursor: not a nextCursor of a page before",
        });
      for (const limit of [0, -1, 1.5, 1_001, Number.NaN])
        await expect(jobtable.list({ limit })).rejects.toMatchObject({
          code: "invalid_input",
          message: `invalid input: limit: must be an integer from 1 to 1000, got ${String(limit)}`,
        });
    });
  });

  test("can't be used after its stop, which needs no start and is idempotent", async () => {
    const jobtable = create();
    await jobtable.stop();
    await jobtable.stop();
    await expect(jobtable.start()).rejects.toMatchObject({ code: "not_ready" });
    const used = create();
    await used.submit("double", { n: 1 });
    await used.stop();
    await expect(used.submit("double", { n: 1 })).rejects.toMatchObject({ code: "not_ready" });
  });

  test.each([
    [{ maxWorkers: 0 }, "option maxWorkers: expected a whole number from 1 to 1024, got 0"],
    [{ pollIntervalMs: Number.NaN }, /^option pollIntervalMs: expected a duration from 0.01 s/],
    [{ pollInterval: 5 }, 'unknown option "pollInterval"'],
    [
      { store: "redis://u:secret@h/0" },
      /^store: expected memory, sqlite:PATH or postgres:.+, got (?!.*secret)/,
    ],
  ])("refuses settings that can't be: %o", async (options, message) => {
    const jobtable = createJobtable({ store: "memory", tasks: [double], ...options });
    await expect(jobtable.start()).rejects.toMatchObject({ code: "invalid_config" });
    await expect(jobtable.start()).rejects.toThrow(message);
    await jobtable.stop();
  });

  test("refuses tasks that can't be, at once", () => {
    expect(() => createJobtable({ tasks: [double, double] })).toThrow(JobtableError);
  });
});

describe("opening a ledger", () => {
  test("picks it by the store's scheme", async () => {
    const ledger = await openLedger("memory", { logger: silentLogger });
    expect(ledger.kind).toBe("memory");
    await ledger.close();
    await expect(openLedger("sqlite:", { logger: silentLogger })).rejects.toMatchObject({
      code: "invalid_config",
    });
  });
});
