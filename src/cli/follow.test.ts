import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import type { JobView } from "../client/replies.js";
import { ClientError } from "../client/transport.js";
import { LedgerError } from "../job/errors.js";
import { awaitEnd, follow } from "./follow.js";
import type { Jobs } from "../client/jobs.js";
import { createTerminal } from "./terminal.js";

const job = (changes: Partial<JobView> = {}): JobView => ({
  job_id: "job_01J0000000000000000000000A",
  state: "running",
  status: "running",
  elapsed_ms: 0,
  task: "ocr",
  attempt: 1,
  max_attempts: 1,
  priority: 0,
  created_at: "2030-01-01T00:00:00.000Z",
  ...changes,
});
const done = job({ state: "done", status: "succeeded" });
const gone = new ClientError("unreachable", "can't reach http://test: nothing listens there");
const cut = new LedgerError("ledger_unavailable", "can't reach the ledger: the connection broke");

type Answer = JobView | null | Error;

/** Jobs whose waits answer what the script says, after the time that they may take. */
function waiting(
  clock: VirtualClock,
  script: readonly Answer[],
): { readonly jobs: Jobs; readonly ticks: number[] } {
  const ticks: number[] = [];
  const unexpected = (): never => {
    throw new Error("only waits were expected");
  };
  const jobs: Jobs = {
    submit: unexpected,
    get: unexpected,
    result: unexpected,
    cancel: unexpected,
    retry: unexpected,
    isServed: unexpected,
    diagnose: unexpected,
    list: unexpected,
    async wait(_, timeoutMs) {
      const answer = script[ticks.push(timeoutMs) - 1];
      if (answer === undefined) throw new Error("one wait too many");
      if (answer instanceof Error) throw answer;
      if (answer !== null && answer.state === "running")
        await new Promise<void>((resolve) => clock.timer(timeoutMs, resolve));
      return answer;
    },
  };
  return { jobs, ticks };
}

/** Moves the clock until the promise has settled. */
async function run<Value>(clock: VirtualClock, promise: Promise<Value>): Promise<Value> {
  const state = { isOver: false };
  const over = (): void => void (state.isOver = true);
  promise.then(over, over);
  for (let step = 0; step < 1_000 && !state.isOver; step += 1) await clock.advance(250);
  return promise;
}

test("every look is shown, to the end", async () => {
  const clock = new VirtualClock();
  const { jobs, ticks } = waiting(clock, [job({ progress: 1 }), job({ progress: 2 }), done]);
  const seen: JobView[] = [];
  const options = { clock, watched: true, seen: (look: JobView) => void seen.push(look) };
  expect(await run(clock, follow(jobs, job(), options))).toBe(done);
  expect(seen.map(({ progress, state }) => progress ?? state)).toEqual(["running", 1, 2, "done"]);
  expect(ticks).toEqual([1_000, 1_000, 1_000]);
});

test("unwatched it looks seldom, and at a job that has ended not at all", async () => {
  const clock = new VirtualClock();
  const { jobs, ticks } = waiting(clock, [job(), done]);
  await run(clock, follow(jobs, job(), { clock, watched: false }));
  await run(clock, follow(jobs, done, { clock, watched: false }));
  expect(ticks).toEqual([30_000, 30_000]);
});

test("its time passes, and the last look is the answer", async () => {
  const clock = new VirtualClock();
  const { jobs, ticks } = waiting(clock, [job(), job({ progress: 9 })]);
  const options = { clock, watched: true, limitMs: 1_400 };
  expect(await run(clock, follow(jobs, job(), options))).toMatchObject({ progress: 9 });
  expect(ticks[0]).toBe(1_000);
  expect(ticks[1]).toBeLessThanOrEqual(400);
});

test("a job that is forgotten ends it with the last look", async () => {
  const clock = new VirtualClock();
  const { jobs } = waiting(clock, [job({ progress: 1 }), null]);
  expect(await run(clock, follow(jobs, job(), { clock, watched: true }))).toMatchObject({
    progress: 1,
  });
});

test.each([
  { what: "server", away: gone, starting: new ClientError("unavailable", "starting") },
  { what: "store", away: cut, starting: cut },
])("F1: a $what that restarts is waited for, one that stays away is not", async (of) => {
  const clock = new VirtualClock();
  const back = waiting(clock, [of.away, of.starting, of.away, done]);
  expect(await run(clock, follow(back.jobs, job(), { clock, watched: false }))).toBe(done);
  const away = waiting(clock, Array<Answer>(1_000).fill(of.away));
  await expect(run(clock, follow(away.jobs, job(), { clock, watched: false }))).rejects.toBe(
    of.away,
  );
  expect(away.ticks.length).toBeGreaterThan(50);
});

test.each([
  new ClientError("unauthorized", "no"),
  new LedgerError("ledger_closed", "it is closed"),
])("what does not pass is not waited for: $message", async (wrong) => {
  const clock = new VirtualClock();
  const { jobs } = waiting(clock, [wrong]);
  await expect(run(clock, follow(jobs, job(), { clock, watched: false }))).rejects.toBe(wrong);
});

test("who waits at a terminal sees how far it is, and nothing of it stays", async () => {
  const clock = new VirtualClock();
  const streams = { stdin: Readable.from([]), stdout: new PassThrough() };
  const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 80, rows: 24 });
  const shown = waiting(clock, [job({ progress: { page: 3 }, elapsed_ms: 1_000 }), done]);
  await run(clock, awaitEnd(shown.jobs, job(), createTerminal({ ...streams, stderr }), { clock }));
  const written = String(stderr.read());
  expect(written).toContain('job_01J0000000000000000000000A running after 1.0 s: {"page":3}');
  expect(written.endsWith("\r\u001b[J")).toBe(true);

  const quiet = new PassThrough();
  const unseen = waiting(clock, [job(), done]);
  await run(
    clock,
    awaitEnd(unseen.jobs, job(), createTerminal({ ...streams, stderr: quiet }), { clock }),
  );
  expect(quiet.read()).toBeNull();
});
