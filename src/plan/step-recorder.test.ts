import { expect, test } from "vitest";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import type { StepRecord } from "../ledger/plan-records.js";
import type { EndedStep, StartedStep } from "./steps/api.js";
import { StepLog } from "./steps/step-log.js";
import { StepRecorder } from "./step-recorder.js";
import { readStep, type StepReport } from "./step-report.js";

const STEP: StartedStep = { index: 0, id: null, name: "s", kind: "command", startedAtMs: 0 };
const ENDED: EndedStep = {
  ...STEP,
  state: "succeeded",
  exitCode: 0,
  signal: null,
  finishedAtMs: 1,
  errorMessage: null,
  log: "all",
  logBytes: 3,
};

/** A store that takes as long as the test wants. */
class Store {
  readonly written: StepReport[] = [];
  readonly #waiting: (() => void)[] = [];
  isSlow = false;

  async writeStep(record: StepRecord): Promise<void> {
    this.written.push(readStep(record));
    if (this.isSlow) await new Promise<void>((done) => this.#waiting.push(done));
  }

  async answer(): Promise<void> {
    this.#waiting.shift()?.();
    await settled();
  }
}

interface Rig {
  readonly clock: VirtualClock;
  readonly store: Store;
  readonly recorder: StepRecorder;
  /** A piece of output. */
  readonly say: (text: string) => void;
}

function rig(): Rig {
  const clock = new VirtualClock();
  const store = new Store();
  const recorder = new StepRecorder("j", store, clock);
  const log = new StepLog();
  const say = (text: string): void => {
    const bytes = Buffer.from(text);
    log.write("stdout", bytes);
    recorder.stepWrote(STEP, "stdout", bytes, log);
  };
  return { clock, store, recorder, say };
}

test("a step that writes without end is recorded once a second, with all that it wrote so far", async () => {
  const { clock, store, recorder, say } = rig();
  store.isSlow = true;
  recorder.stepStarted(STEP);
  for (let tick = 0; tick < 300; tick += 1) {
    say(".");
    await clock.advance(5);
    // Output comes while each write is under way, and right after it.
    say(".");
    await store.answer();
    await clock.advance(5);
  }
  const logs = store.written.map(({ log }) => log.length);
  expect(logs.length).toBeGreaterThan(2);
  expect(logs.length).toBeLessThanOrEqual(4);
  expect(logs.at(-1)).toBeGreaterThan(350);
});

test("starts and ends are recorded at once; what comes while a write is under way follows it", async () => {
  const { clock, store, recorder } = rig();
  store.isSlow = true;
  recorder.stepStarted(STEP);
  recorder.stepEnded(ENDED);
  expect(store.written.map(({ state }) => state)).toEqual(["running"]);
  await store.answer();
  expect(store.written.map(({ state }) => state)).toEqual(["running", "succeeded"]);
  await store.answer();
  expect(clock.pendingTimers).toBe(0);
});

test("the end waits for all, once", async () => {
  const { clock, store, recorder, say } = rig();
  recorder.stepStarted(STEP);
  say("a");
  recorder.stepEnded(ENDED);
  await recorder.end();
  expect(store.written.at(-1)).toMatchObject({ state: "succeeded", log: "all" });
  expect(clock.pendingTimers).toBe(0);
  const { length } = store.written;
  await recorder.end();
  expect(store.written).toHaveLength(length);
});
