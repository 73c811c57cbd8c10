/** The acts that ledger tests are made of: a job, a beat, a claim, an end, a wait. */
import { expect } from "vitest";
import type { Claim, Job, NewJob } from "../../src/job/job.js";
import type { Status } from "../../src/job/state.js";
import type {
  ClaimedJob,
  End,
  JobBeat,
  Ledger,
  RescueLimit,
  WorkerBeat,
} from "../../src/ledger/ledger.js";

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
/** A bound that no test reaches. */
export const ROOMY = { maxDepth: 1_000_000 };
export const WORKER = "worker-0000000a";
export const OTHER_WORKER = "worker-0000000b";
/** Nothing is stuck by this. */
export const PATIENT: RescueLimit = {
  jobTimeoutMs: 1_000 * HOUR_MS,
  workerTimeoutMs: 1_000 * HOUR_MS,
  goneWorkerIds: [],
  chunk: 1_000,
};

let lastId = 0;

/** 26 characters, each larger than the one before. */
export function nextJobId(): string {
  lastId += 1;
  return String(lastId).padStart(26, "0");
}

export function newJob(given: Partial<NewJob> = {}): NewJob {
  const jobId = given.jobId ?? nextJobId();
  return {
    jobId,
    task: "echo",
    schemaVersion: 1,
    payloadJson: `{"schema_version":1,"task":"echo","input":"${jobId}"}`,
    ...given,
  };
}

export function newJobs(count: number, given: Partial<NewJob> = {}): NewJob[] {
  return Array.from({ length: count }, () => newJob(given));
}

/** @throws Error where there is nothing: a test's own mistake, or the fault that it looks for. */
export function present<T>(value: T | null | undefined): T {
  if (value === null || value === undefined) throw new Error("expected a value, found none");
  return value;
}

/** Submits jobs that must all be accepted. */
export async function accept(ledger: Ledger, jobs: readonly NewJob[]): Promise<Job[]> {
  const outcomes = await ledger.submit(jobs, ROOMY);
  return outcomes.map((outcome) => {
    if (outcome.kind !== "accepted") throw new Error(`refused: ${JSON.stringify(outcome)}`);
    return outcome.job;
  });
}

export async function acceptOne(ledger: Ledger, given: Partial<NewJob> = {}): Promise<Job> {
  return present((await accept(ledger, [newJob(given)]))[0]);
}

export function claim(
  ledger: Ledger,
  limit: number,
  workerId = WORKER,
  tasks: readonly string[] = ["echo"],
): Promise<ClaimedJob[]> {
  return ledger.claim({ workerId, tasks, limit });
}

/** Claims one job; there must be one. */
export async function claimOne(ledger: Ledger, workerId = WORKER): Promise<ClaimedJob> {
  return present((await claim(ledger, 1, workerId))[0]);
}

export function claimOf(job: Job): Claim {
  return { jobId: job.jobId, workerId: present(job.workerId), attempt: job.attempt };
}

/** The status that the job has by it, or null where it was refused. */
export async function settledAs(ledger: Ledger, held: Claim, end: End): Promise<Status | null> {
  const answers = await ledger.settle([{ ...held, end }]);
  expect(answers).toHaveLength(1);
  return answers[0] ?? null;
}

/** Whether it happened. */
export async function settleOne(ledger: Ledger, held: Claim, end: End): Promise<boolean> {
  return (await settledAs(ledger, held, end)) !== null;
}

export const SUCCEED: End = { event: "succeed", resultJson: "1" };
export const FAIL: End = { event: "fail", errorMessage: "Error: it broke" };

/** What a release gives back. */
export interface Unstarted {
  readonly job: Pick<Job, "startedAtMs">;
  readonly payloadJson: string;
}

export function releaseOf({ job, payloadJson }: Unstarted): End {
  return { event: "release", payloadJson, startedAtMs: job.startedAtMs };
}

export function retryIn(delayMs: number, errorMessage = "Error: not yet"): End {
  return { event: "retry", errorMessage, delayMs };
}

export function beat(workerId = WORKER, given: Partial<WorkerBeat> = {}): WorkerBeat {
  return {
    workerId,
    host: "host-1",
    pid: 4242,
    pidStamp: "77",
    state: "running",
    tasks: ["echo"],
    maxWorkers: 4,
    processed: 0,
    failed: 0,
    cancelled: 0,
    ...given,
  };
}

export function beatOf(job: Job, progressJson?: string): JobBeat {
  const { jobId, attempt } = job;
  return progressJson === undefined ? { jobId, attempt } : { jobId, attempt, progressJson };
}

export async function look(ledger: Ledger, jobId: string): Promise<Job | null> {
  const [job] = await ledger.get([jobId]);
  if (job === undefined) throw new Error("get answered fewer jobs than it was asked for");
  return job;
}

/** The job, which must be there. */
export async function see(ledger: Ledger, jobId: string): Promise<Job> {
  return present(await look(ledger, jobId));
}

export async function statusesOf(ledger: Ledger, jobIds: readonly string[]): Promise<unknown[]> {
  return (await ledger.get(jobIds)).map((job) => job?.status ?? null);
}

/** queued, running and total, without the age. */
export async function numbers(ledger: Ledger): Promise<[number, number, number]> {
  const { queued, running, total } = await ledger.counts();
  return [queued, running, total];
}

/** Leads a new job to `status` by the shortest way. Nothing else may be waiting. */
export async function jobIn(
  ledger: Ledger,
  status: Status,
  given: Partial<NewJob> = {},
): Promise<{ job: Job; payloadJson: string }> {
  const submitted = newJob(given);
  const { jobId, payloadJson } = submitted;
  const job = present((await accept(ledger, [submitted]))[0]);
  if (status === "queued") return { job, payloadJson };
  const [claimed] = await ledger.claim({ workerId: WORKER, tasks: [job.task], limit: 1 });
  expect(claimed?.job.jobId).toBe(jobId);
  if (status !== "running") {
    const ends = {
      succeeded: SUCCEED,
      failed: FAIL,
      timed_out: { event: "time_out", errorMessage: "TimeLimit: too long" },
      cancelled: { event: "stop" },
    } as const satisfies Record<Exclude<Status, "queued" | "running">, End>;
    expect(await settleOne(ledger, claimOf(present(claimed).job), ends[status])).toBe(true);
  }
  return { job: await see(ledger, jobId), payloadJson };
}

/** Something that rings: `heard()` resolves at the first ring after it was called. */
export class Bell {
  #rings = 0;
  #waiting: (() => void)[] = [];

  get rings(): number {
    return this.#rings;
  }

  readonly ring = (): void => {
    this.#rings += 1;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  };

  heard(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }
}

/** Waits as the engine does: subscribe, look, and look again at each ring; no clock, no polling. */
export async function waitUntil(
  ledger: Ledger,
  jobId: string,
  done: (job: Job | null) => boolean,
): Promise<Job | null> {
  const bell = new Bell();
  const unsubscribe = ledger.watch(jobId, bell.ring);
  try {
    for (;;) {
      const heard = bell.heard();
      const job = await look(ledger, jobId);
      if (done(job)) return job;
      await heard;
    }
  } finally {
    unsubscribe();
  }
}
