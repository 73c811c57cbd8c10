/**
 * Stress on one ledger: submitters, runners, pollers and waiters against the same table for a
 * while, with every ending and hostile timing, then the books are balanced. The load is driven as
 * fast as the ledger answers, so what is asserted are the invariants at the end and at each look,
 * never a rate.
 */
import type { Idempotency, Job } from "../../src/job/job.js";
import { encodePayload } from "../../src/job/payload.js";
import { isTerminal, type Status } from "../../src/job/state.js";
import type { ClaimedJob, End, Ledger } from "../../src/ledger/ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { idSource, systemRandom } from "../../src/runtime/random.js";
import { turnEnd } from "../../src/runtime/turn.js";

export interface StressOptions {
  readonly durationMs: number;
  /** Bound on queued + running during the run. */
  readonly maxDepth: number;
}

export interface StressCounts {
  accepted: number;
  refused: number;
  /** Submits with a key that another had given before, or at the same moment. */
  repeated: number;
  ended: number;
  /** Settlements of a claim by a second finisher, which must all be refused. */
  doubleSettlesRefused: number;
  retried: number;
  cancelled: number;
  looks: number;
  waits: number;
}

/** Everything that the actors share: what was accepted, what ended, and what went wrong. */
interface Books {
  readonly counts: StressCounts;
  readonly acceptedIds: string[];
  readonly endedIds: Map<string, number>;
  /** The one job of each idempotency key. */
  readonly keyedIds: Map<string, string>;
  readonly faults: string[];
}

const SUBMITTERS = 4;
const RUNNERS = 2;
const POLLERS = 3;
const WAITERS = 2;
const WORKER_TIMEOUT_MS = 60_000;
/** A waiter that hears nothing for this long has missed its wake-up. */
const HUNG_AFTER_MS = 20_000;

/**
 * Runs the actors against `ledgers` (handles on one store; actors take them in turn) and answers
 * the counts. Rejects with every broken invariant, one a line.
 */
export async function stress(
  ledgers: readonly [Ledger, ...Ledger[]],
  options: StressOptions,
): Promise<StressCounts> {
  const books: Books = {
    counts: {
      accepted: 0,
      refused: 0,
      repeated: 0,
      ended: 0,
      doubleSettlesRefused: 0,
      retried: 0,
      cancelled: 0,
      looks: 0,
      waits: 0,
    },
    acceptedIds: [],
    endedIds: new Map(),
    keyedIds: new Map(),
    faults: [],
  };
  const handle = (index: number): Ledger => ledgers[index % ledgers.length] ?? ledgers[0];
  const stopSubmitting = new AbortController();
  const stopRunning = new AbortController();
  const cancelTimer = systemClock.timer(options.durationMs, () => {
    stopSubmitting.abort();
  });
  // The timer above does not keep the process alive; the actors' pending calls do.
  const submitters = spread(SUBMITTERS, (i) =>
    submitter(handle(i), books, options.maxDepth, stopSubmitting.signal),
  );
  const others = [
    ...spread(RUNNERS, (i) =>
      runner(handle(i), books, `worker-0000000${String(i)}`, stopRunning.signal),
    ),
    ...spread(POLLERS, (i) => poller(handle(i), books, options.maxDepth, stopRunning.signal)),
    ...spread(WAITERS, (i) => waiter(handle(i), books, stopRunning.signal)),
  ];
  try {
    await Promise.all(submitters);
    await drained(ledgers[0]);
  } finally {
    cancelTimer();
    stopSubmitting.abort();
    stopRunning.abort();
  }
  await Promise.all(others);
  await balance(ledgers[0], books);
  if (books.faults.length > 0) throw new Error(books.faults.slice(0, 20).join("\n"));
  return books.counts;
}

function spread(count: number, start: (index: number) => Promise<void>): Promise<void>[] {
  return Array.from({ length: count }, (_, index) => start(index));
}

async function submitter(
  ledger: Ledger,
  books: Books,
  maxDepth: number,
  signal: AbortSignal,
): Promise<void> {
  const random = systemRandom();
  const nextId = idSource(systemClock, random);
  while (!signal.aborted) {
    const batch = Array.from({ length: 1 + Math.floor(random.unit() * 8) }, () => ({
      jobId: nextId(),
      task: "stress",
      schemaVersion: 1,
      payloadJson: encodePayload("stress", '{"text":"\\u0000\\ud800"}'),
      maxAttempts: random.unit() < 0.2 ? 2 : 1,
      idempotency: random.unit() < 0.2 ? someKey(books, random.unit()) : null,
    }));
    for (const outcome of await ledger.submit(batch, { maxDepth })) {
      if (outcome.kind === "accepted") {
        books.counts.accepted += 1;
        books.acceptedIds.push(outcome.job.jobId);
        bookKey(books, outcome.job);
      } else if (outcome.kind === "repeated") {
        books.counts.repeated += 1;
        bookKey(books, outcome.job);
      } else {
        books.counts.refused += 1;
        if (outcome.kind !== "full" || outcome.depth > maxDepth)
          books.faults.push(`refused: ${JSON.stringify(outcome)}`);
      }
    }
    if (random.unit() < 0.1) await cancelOne(ledger, books, random.unit());
    await turnEnd();
  }
}

/** One that is likely to be given by all submitters at the same time, or was given lately. */
function someKey({ counts }: Books, unit: number): Idempotency {
  const moment = Math.floor(counts.accepted / 32) - Math.floor(unit * 3);
  return { key: `key of moment ${String(moment)}`, fingerprint: "the same" };
}

function bookKey({ keyedIds, faults }: Books, { idempotencyKey: key, jobId }: Job): void {
  if (key === null) return;
  const known = keyedIds.get(key) ?? jobId;
  if (known !== jobId) faults.push(`${key} is of both ${known} and ${jobId}`);
  keyedIds.set(key, known);
}

async function cancelOne(ledger: Ledger, books: Books, unit: number): Promise<void> {
  const recent = books.acceptedIds.slice(-64);
  const jobId = recent[Math.floor(unit * recent.length)];
  if (jobId === undefined) return;
  const [outcome] = await ledger.cancel([jobId]);
  if (outcome?.kind === "cancelled") {
    books.counts.cancelled += 1;
    ended(books, jobId);
  }
}

async function runner(
  ledger: Ledger,
  books: Books,
  workerId: string,
  signal: AbortSignal,
): Promise<void> {
  const random = systemRandom();
  while (!signal.aborted) {
    const claimed = await ledger.claim({ workerId, tasks: ["stress"], limit: 16 });
    if (claimed.length === 0) {
      await turnEnd();
      continue;
    }
    const settlements = claimed.map((one) => ({
      jobId: one.job.jobId,
      workerId,
      attempt: one.job.attempt,
      end: someEnd(random.unit(), one),
    }));
    // Two finishers race for the same claims: of each pair at most one may succeed.
    const [first, second] = await Promise.all([
      ledger.settle(settlements),
      ledger.settle(settlements),
    ]);
    const refused = record(books, claimed, settlements, [first, second]);
    // A retry that is not allowed changed nothing, so the job is still ours to end.
    if (refused.length > 0) {
      const answers = await ledger.settle(refused);
      answers.forEach((status, index) => {
        const jobId = refused[index]?.jobId;
        if (status !== null && jobId !== undefined) ended(books, jobId);
      });
    }
  }
}

function someEnd(unit: number, { job, payloadJson }: ClaimedJob): End {
  if (unit < 0.6) return { event: "succeed", resultJson: '{"ok":true}' };
  if (unit < 0.7) return { event: "fail", errorMessage: "Error: \0 told to fail \ud800" };
  if (unit < 0.75) return { event: "time_out", errorMessage: "TimeLimit: exceeded 5 ms" };
  if (unit < 0.8) return { event: "stop" };
  if (unit < 0.9) return { event: "retry", errorMessage: "Error: again", delayMs: 0 };
  return { event: "release", payloadJson, startedAtMs: job.startedAtMs };
}

interface Settled {
  readonly jobId: string;
  readonly workerId: string;
  readonly attempt: number;
  readonly end: End;
}

/** Books what two racing settles answered; answers the retries that had no attempt left, as failures to record. */
function record(
  books: Books,
  claimed: readonly ClaimedJob[],
  settlements: readonly Settled[],
  answers: readonly [(Status | null)[], (Status | null)[]],
): Settled[] {
  const again: Settled[] = [];
  settlements.forEach((settlement, index) => {
    const wins = answers.flatMap((of) => of[index] ?? []);
    if (wins.length > 1)
      books.faults.push(`${settlement.jobId} was settled as ${wins.join(" and ")}`);
    if (wins.length < 2) books.counts.doubleSettlesRefused += 1;
    const job = claimed[index]?.job;
    const [status] = wins;
    if (status === "queued") books.counts.retried += 1;
    else if (status !== undefined) ended(books, settlement.jobId);
    else {
      if (settlement.end.event === "retry" && job?.attempt === job?.maxAttempts)
        again.push({
          ...settlement,
          end: { event: "fail", errorMessage: "Error: no attempt left" },
        });
      else books.faults.push(`${settlement.jobId} could not be settled by its owner`);
    }
  });
  return again;
}

function ended(books: Books, jobId: string): void {
  books.counts.ended += 1;
  books.endedIds.set(jobId, (books.endedIds.get(jobId) ?? 0) + 1);
}

async function poller(
  ledger: Ledger,
  books: Books,
  maxDepth: number,
  signal: AbortSignal,
): Promise<void> {
  const random = systemRandom();
  const lastSeen = new Map<string, Status>();
  while (!signal.aborted) {
    const counts = await ledger.counts();
    if (counts.queued + counts.running > maxDepth)
      books.faults.push(`depth ${String(counts.queued + counts.running)} is over the bound`);
    if (counts.total < counts.queued + counts.running)
      books.faults.push(`total ${String(counts.total)} is less than the depth`);
    const recent = books.acceptedIds.slice(-32);
    const jobs = await ledger.get(recent);
    jobs.forEach((job, index) => {
      const jobId = recent[index] ?? "";
      if (job === null) books.faults.push(`${jobId} was accepted and is unknown`);
      else {
        const before = lastSeen.get(jobId);
        if (before !== undefined && isTerminal(before) && job.status !== before)
          books.faults.push(`${jobId} left ${before} for ${job.status}`);
        lastSeen.set(jobId, job.status);
      }
    });
    books.counts.looks += 1;
    if (random.unit() < 0.2)
      await ledger.heartbeat(beatOf(`worker-0000000${String(Math.floor(random.unit() * 2))}`), []);
    await turnEnd();
  }
}

function beatOf(workerId: string): Parameters<Ledger["heartbeat"]>[0] {
  return {
    workerId,
    host: "stress",
    pid: process.pid,
    pidStamp: "",
    state: "running",
    tasks: ["stress"],
    maxWorkers: 16,
    processed: 0,
    failed: 0,
    cancelled: 0,
  };
}

/** Waits for one recent job after the other, the way a long poll does: subscribe, look, sleep until hinted. */
async function waiter(ledger: Ledger, books: Books, signal: AbortSignal): Promise<void> {
  let next = 0;
  while (!signal.aborted) {
    const jobId = books.acceptedIds[Math.max(next, books.acceptedIds.length - 4)];
    if (jobId === undefined) {
      await turnEnd();
      continue;
    }
    next = books.acceptedIds.length;
    if (!(await seenTerminal(ledger, jobId))) books.faults.push(`a waiter of ${jobId} hung`);
    books.counts.waits += 1;
  }
}

async function seenTerminal(ledger: Ledger, jobId: string): Promise<boolean> {
  let wake: (hung: boolean) => void = () => undefined;
  let hints = 0;
  const unwatch = ledger.watch(jobId, () => {
    hints += 1;
    wake(false);
  });
  try {
    for (;;) {
      const before = hints;
      const [job] = await ledger.get([jobId]);
      if (job === null || (job !== undefined && isTerminal(job.status))) return true;
      if (hints !== before) continue;
      const hung = await new Promise<boolean>((resolve) => {
        const stop = systemClock.timer(HUNG_AFTER_MS, () => {
          resolve(true);
        });
        wake = (answer) => {
          stop();
          resolve(answer);
        };
      });
      if (hung) return false;
    }
  } finally {
    unwatch();
  }
}

/** Resolves when nothing is queued or running any more; the runners are still at work. */
async function drained(ledger: Ledger): Promise<void> {
  for (;;) {
    const counts = await ledger.counts();
    if (counts.queued + counts.running === 0) return;
    await turnEnd();
  }
}

async function balance(ledger: Ledger, books: Books): Promise<void> {
  const { counts, acceptedIds, endedIds, faults } = books;
  if (new Set(acceptedIds).size !== acceptedIds.length) faults.push("an id was given twice");
  const final = await ledger.counts();
  if (final.queued !== 0 || final.running !== 0) faults.push("the depth is not zero at the end");
  if (final.total !== counts.accepted)
    faults.push(`${String(counts.accepted)} accepted, ${String(final.total)} on record`);
  for (let start = 0; start < acceptedIds.length; start += 500) {
    const ids = acceptedIds.slice(start, start + 500);
    (await ledger.get(ids)).forEach((job, index) => {
      const jobId = ids[index] ?? "";
      if (job === null || !isTerminal(job.status)) faults.push(`${jobId} never ended`);
      if (endedIds.get(jobId) !== 1)
        faults.push(`${jobId} ended ${String(endedIds.get(jobId) ?? 0)} times`);
    });
  }
  const rescued = await ledger.rescue({
    jobTimeoutMs: 1,
    workerTimeoutMs: WORKER_TIMEOUT_MS,
    goneWorkerIds: [],
    chunk: 100,
  });
  if (rescued.length > 0) faults.push("a stuck job was left behind");
}
