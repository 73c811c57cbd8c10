import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { createTestJobtable, task, type TaskContext } from "../index.js";

const sent: string[] = [];
let jobtable: ReturnType<typeof create>;

const mail = task({
  name: "mail",
  // In a file of its own, and in production, it runs in a thread.
  isolation: "thread",
  input: z.object({ to: z.string(), failures: z.number().default(0) }),
  maxAttempts: 10,
  run({ to, failures }, { attempt }) {
    if (attempt <= failures) throw new Error("the server is busy");
    sent.push(to);
    return { attempt };
  },
});
const chain = task({
  name: "chain",
  async run(left: number) {
    if (left > 0) await jobtable.submit("chain", left - 1);
    else sent.push("last");
  },
});
const deaf = task({
  name: "deaf",
  run: (_input: unknown, { signal }: TaskContext) =>
    new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => {
        resolve();
      });
    }),
});

function create() {
  return createTestJobtable({ tasks: [mail, chain, deaf], asyncMaxQueue: 100 });
}

afterEach(async () => {
  await jobtable.stop();
  sent.length = 0;
});

describe("a jobtable for tests", () => {
  test("starts by itself, runs all tasks in this process, and tells when all is done", async () => {
    jobtable = create();
    await jobtable.idle();
    const job = await jobtable.submit("mail", { to: "Ada", failures: 0 });
    await jobtable.submit("chain", 5);
    await jobtable.idle();
    expect(sent.sort()).toEqual(["Ada", "last"]);
    expect(await jobtable.result(job)).toMatchObject({ output: { attempt: 1 } });
    expect(await jobtable.counts()).toMatchObject({ queued: 0, running: 0, total: 7 });
  });

  test("waits for no delay and no pause between attempts", async () => {
    jobtable = create();
    const minutes = (n: number): { delayMs: number } => ({ delayMs: n * 60_000 });
    await jobtable.submit("mail", { to: "in 60 min", failures: 0 }, minutes(60));
    await jobtable.submit("mail", { to: "in 5 min", failures: 0 }, minutes(5));
    const job = await jobtable.submit("mail", { to: "at the ninth try", failures: 8 });
    await jobtable.idle();
    expect(sent).toEqual(["at the ninth try", "in 5 min", "in 60 min"]);
    expect(await jobtable.result(job)).toMatchObject({ output: { attempt: 9 } });
  });

  test("keeps what has ended, however far its clock jumps and however many there are", async () => {
    jobtable = create();
    const first = await jobtable.submit("mail", { to: "first", failures: 0 });
    await jobtable.idle();
    const one = { task: "mail" as const, input: { to: "many", failures: 0 } };
    const many = await jobtable.submitMany(Array.from({ length: 99 }, () => one));
    await jobtable.idle();
    await jobtable.submit("chain", 60, { delayMs: 300 * 86_400_000 });
    await jobtable.idle();
    expect(await jobtable.result(first)).toMatchObject({ output: { attempt: 1 } });
    expect(await jobtable.result(many[0] ?? "")).toMatchObject({ output: { attempt: 1 } });
  });

  test("says what is left when its time is up", async () => {
    jobtable = create();
    const { jobId } = await jobtable.submit("deaf", null);
    await expect(jobtable.idle({ timeoutMs: 20 })).rejects.toThrow(
      `idle: not after 20 ms; left: job_${jobId} (deaf, running)`,
    );
    await jobtable.cancel(jobId);
    await jobtable.idle();
  });
});
