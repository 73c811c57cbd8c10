import { PassThrough, Readable, Writable } from "node:stream";
import { describe, expect, test } from "vitest";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { LedgerError } from "../job/errors.js";
import type { PlanRecord } from "../ledger/plan-records.js";
import type { StepReport } from "../plan/step-report.js";
import type { LookAtPlan, RunView } from "../plan/view.js";
import { PhaseOnTerminal, showPhase } from "./plan-follow.js";
import { createTerminal } from "./terminal.js";

const JOB = "01J0000000000000000000000B";
const PLAN: PlanRecord = {
  planId: "01J0000000000000000000000A",
  name: "edit",
  workspace: "/srv/app",
  file: null,
  createdAtMs: 1,
  usedAtMs: 1,
};
const STEP: StepReport = {
  index: 0,
  id: null,
  name: "yes",
  kind: "command",
  state: "running",
  exitCode: null,
  signal: null,
  startedAtMs: 1,
  finishedAtMs: null,
  errorMessage: null,
  log: "",
  logBytes: 0,
};
const STARTED = { ...STEP, startedAtMs: 1 };
const ENDED = { ...STARTED, state: "succeeded", exitCode: 0, finishedAtMs: 3_001 } as const;

/** Takes what is written when it is told to. */
class Reader extends Writable {
  text = "";
  #waiting: (() => void)[] = [];
  #reads = true;

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.text += chunk.toString();
    if (this.#reads) done();
    else this.#waiting.push(done);
  }

  pause(): void {
    this.#reads = false;
  }

  goOn(): void {
    this.#reads = true;
    for (const done of this.#waiting.splice(0)) done();
  }
}

function onTerminal(json = false): { stdout: Reader; stderr: Reader; phase: PhaseOnTerminal } {
  const [stdout, stderr] = [new Reader(), new Reader()];
  const terminal = createTerminal({ stdin: Readable.from([]), stdout, stderr });
  return { stdout, stderr, phase: new PhaseOnTerminal({ terminal, json }) };
}

describe("a phase in place", () => {
  test("shows what its steps write, and its own lines on lines of their own", () => {
    const { stdout, stderr, phase } = onTerminal();
    phase.began("job_1", PLAN, "execute");
    phase.stepStarted(STARTED);
    phase.stepWrote(STARTED, "stdout", Buffer.from("one\ntwo"));
    phase.stepWrote(STARTED, "stderr", Buffer.from("!"));
    phase.stepEnded(ENDED);
    expect(stdout.text).toBe(
      "plan edit: execute in place as job_1\n-- step 1: yes\none\ntwo\n-- done after 3.0 s\n",
    );
    expect(stderr.text).toBe("!");
  });

  test("with JSON standard output is for the answer alone", () => {
    const { stdout, stderr, phase } = onTerminal(true);
    phase.stepStarted(STARTED);
    phase.stepWrote(STARTED, "stdout", Buffer.from("one\n"));
    expect(stdout.text).toBe("");
    expect(stderr.text).toBe("-- step 1: yes\none\n");
  });

  test("keeps no more than a megabyte that nobody reads, and says what is missing", async () => {
    const { stdout, phase } = onTerminal();
    const piece = Buffer.alloc(64 * 1024, "x");
    stdout.pause();
    for (let piled = 0; piled < 1_000; piled += 1) phase.stepWrote(STARTED, "stdout", piece);
    expect(stdout.writableLength).toBeLessThan(1.2 * 1024 * 1024);
    const shown = Math.round(stdout.writableLength / piece.byteLength);
    stdout.goOn();
    await settled();
    phase.stepWrote(STARTED, "stdout", Buffer.from("after\n"));
    await settled();
    const missing = String((1_000 - shown) * piece.byteLength);
    expect(stdout.text.slice(shown * piece.byteLength)).toBe(
      `\n[... ${missing} bytes not shown; plan show --logs has the step's log ...]\nafter\n`,
    );
  });

  test("says so at the end of a step whose output nobody read", async () => {
    const { stdout, phase } = onTerminal();
    stdout.pause();
    phase.stepWrote(STARTED, "stdout", Buffer.alloc(2 * 1024 * 1024, "x\n"));
    phase.stepWrote(STARTED, "stdout", Buffer.from("lost"));
    phase.stepEnded(ENDED);
    stdout.goOn();
    await settled();
    expect(stdout.text.slice(2 * 1024 * 1024)).toBe(
      "[... 4 bytes not shown; plan show --logs has the step's log ...]\n-- done after 3.0 s\n",
    );
  });
});

describe("a phase in a worker", () => {
  const run = (changes: Partial<RunView>): RunView => ({
    jobId: JOB,
    phase: "execute",
    status: "running",
    createdAtMs: 1,
    startedAtMs: 1,
    finishedAtMs: null,
    workerId: null,
    errorMessage: null,
    outcome: null,
    patchBytes: null,
    steps: [],
    ...changes,
  });

  /** Plans whose looks at the job answer one view after the other. */
  function follow(
    looks: readonly (RunView | LedgerError)[],
    live: boolean,
  ): {
    readonly clock: VirtualClock;
    readonly asked: unknown[];
    readonly stdout: PassThrough;
    readonly stderr: PassThrough;
    readonly code: Promise<number>;
  } {
    const clock = new VirtualClock();
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const asked: unknown[] = [];
    const left = [...looks];
    const plans = {
      look: (...args: unknown[]) => {
        asked.push(args);
        const next = left.shift() ?? null;
        return next instanceof LedgerError ? Promise.reject(next) : Promise.resolve(next);
      },
      show: (plan: PlanRecord, { jobId }: Pick<LookAtPlan, "jobId"> = {}) =>
        Promise.resolve({
          plan,
          execute: jobId === JOB ? (looks.filter((look) => "status" in look).at(-1) ?? null) : null,
          apply: null,
        }),
    };
    const terminal = createTerminal({ stdin: Readable.from([]), stdout, stderr });
    const ledger = { watch: () => () => undefined };
    const code = showPhase(
      { invocation: { terminal, json: false }, plans, ledger, clock },
      { plan: PLAN, phase: "execute", jobId: JOB },
      { live },
    );
    return { clock, asked, stdout, stderr, code };
  }

  test("is waited for by its job, without a look at what its steps write", async () => {
    const failed = run({ status: "failed", errorMessage: "StepFailed: no", finishedAtMs: 2_001 });
    const { clock, asked, code } = follow([run({}), failed], false);
    await clock.advance(1_000);
    expect(await code).toBe(1);
    expect(asked).toEqual([
      [JOB, { steps: false }],
      [JOB, { steps: false }],
    ]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("F1: is waited for while the store restarts; where it stays away the job is named", async () => {
    const cut = new LedgerError("ledger_unavailable", "the connection is cut");
    const back = follow([cut, cut, run({ status: "succeeded", finishedAtMs: 2_001 })], false);
    await back.clock.advance(1_000);
    expect(await back.code).toBe(0);
    const away = follow(Array<LedgerError>(1_000).fill(cut), false);
    const ended = expect(away.code).rejects.toBe(cut);
    for (let second = 0; second < 70; second += 1) await away.clock.advance(1_000);
    await ended;
    expect(String(away.stderr.read())).toContain(`job_${JOB}`);
  });

  test("is followed: each look adds what is new", async () => {
    const wrote = (log: string, state: StepReport["state"] = "running"): RunView =>
      run({
        steps: [{ ...STEP, log, logBytes: log.length, state, finishedAtMs: 3_001 }],
        ...(state === "running" ? {} : { status: "succeeded", finishedAtMs: 3_001 }),
      });
    const looks = [
      run({}),
      wrote("one\ntw"),
      wrote("one\ntwo\n"),
      wrote("one\ntwo\n3", "succeeded"),
    ];
    const { clock, stdout, code } = follow(looks, true);
    await clock.advance(3_000);
    expect(await code).toBe(0);
    expect(String(stdout.read())).toMatch(
      /^-- step 1: yes\none\ntwo\n3\n-- done after 3.0 s\nexecute done after 3.0 s\nnothing changed\n/,
    );
  });
});
