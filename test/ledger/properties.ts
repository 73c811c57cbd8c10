/**
 * Random sequences of commands on a ledger and on the model, compared after each: answers, every
 * record, counts, workers, payloads. With two handles the commands go to either. On failure
 * fast-check prints the seed and the shortest sequence that still fails; PROPERTY_SEED and
 * PROPERTY_RUNS in the environment repeat it or look further.
 */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Job } from "../../src/job/job.js";
import type { End, Ledger } from "../../src/ledger/ledger.js";
import { beat, newJob, nextJobId, present } from "./acts.js";
import { command, STEP_MS, WORKERS, type Command, type Pick, type SettlePick } from "./commands.js";
import { isShared, withHarness, type LedgerFactory, type LedgerHarness } from "./harness.js";
import { ANY, Model, type ModelEnd, type ModelJob } from "./model.js";

/** The same sequences each time, unless asked otherwise: a test that fails by chance helps nobody. */
const DEFAULT_SEED = 20_260_101;
/** Between two commands, so that none happens at the time of another. */
const TICK_MS = 10;
/** How far a real clock may have moved on within one sequence. */
const TOLERANCE_MS = 4_000;

export function ledgerProperties(
  name: string,
  factory: LedgerFactory,
  { runs, testTimeoutMs = 60_000 }: { readonly runs: number; readonly testTimeoutMs?: number },
): void {
  describe(`${name} ledger against the model`, () => {
    test(
      "does what the model does, whatever the sequence",
      async () => {
        const maxDepth = fc.integer({ min: 1, max: 10 });
        const commands = fc.array(command, { maxLength: 60, size: "max" });
        await fc.assert(
          fc.asyncProperty(maxDepth, commands, (depth, sequence) =>
            withHarness(factory, (harness) => drive(harness, depth, sequence)),
          ),
          {
            seed: Number(process.env["PROPERTY_SEED"] ?? DEFAULT_SEED),
            numRuns: Number(process.env["PROPERTY_RUNS"] ?? runs),
          },
        );
      },
      testTimeoutMs,
    );
  });
}

async function drive(
  harness: LedgerHarness,
  maxDepth: number,
  sequence: readonly Command[],
): Promise<void> {
  const handles = [harness.ledger];
  if (isShared(harness)) handles.push(await harness.second());
  const run = new Run(harness, handles, maxDepth);
  for (const one of sequence) await run.step(one);
  await run.finish();
}

class Run {
  readonly #model = new Model();
  readonly #harness: LedgerHarness;
  readonly #handles: readonly Ledger[];
  readonly #maxDepth: number;
  /** Every id that was ever submitted. */
  readonly #ids: string[] = [];
  /** What a job looked like when it had ended: it must stay so. */
  readonly #ends = new Map<string, string>();

  constructor(harness: LedgerHarness, handles: readonly Ledger[], maxDepth: number) {
    this.#harness = harness;
    this.#handles = handles;
    this.#maxDepth = maxDepth;
  }

  async step(one: Command): Promise<void> {
    await this.#age(TICK_MS);
    await this.#act(present(this.#handles[one.handle % this.#handles.length]), one);
    await this.#compare();
  }

  /** What is too dear to compare at each step. */
  async finish(): Promise<void> {
    for (const job of this.#model.jobs) {
      const found = await this.#harness.ledger.result(job.jobId);
      expect(found?.resultJson).toBe(job.result);
      const payloadJson = await this.#harness.ledger.payload(job.jobId);
      const mayHaveLeft =
        job.status !== "queued" && (job.status !== "running" || job.attempt >= job.maxAttempts);
      if (payloadJson !== null || !mayHaveLeft) expect(payloadJson).toBe(job.payloadJson);
    }
  }

  async #age(ms: number): Promise<void> {
    this.#model.now += ms;
    await this.#harness.age(ms);
  }

  async #act(ledger: Ledger, one: Command): Promise<void> {
    const model = this.#model;
    switch (one.verb) {
      case "submit":
        return this.#submit(ledger, one);
      case "claim": {
        const { worker, tasks, limit } = one;
        const expected = model.claim(worker, tasks, limit);
        const claimed = await ledger.claim({ workerId: worker, tasks, limit });
        expect(
          claimed.map(({ job, payloadJson }) => [job.jobId, job.attempt, payloadJson]),
        ).toEqual(expected.map((job) => [job.jobId, job.attempt, job.payloadJson]));
        return;
      }
      case "settle":
        return this.#settle(ledger, one.picks);
      case "heartbeat": {
        const worker = beat(one.worker, { tasks: one.tasks });
        const jobs = this.#pick(one.picks).map(({ jobId, given }) => ({
          jobId,
          attempt: model.find(jobId)?.attempt ?? 1,
          ...(given.progress ? { progressJson: `{"at":${String(model.now)}}` } : {}),
        }));
        const answer = await ledger.heartbeat(worker, jobs);
        const expected = model.beat(worker, jobs);
        expect([...answer.cancelRequested].sort()).toEqual(expected.cancelRequested.sort());
        expect([...answer.lost].sort()).toEqual(expected.lost.sort());
        return;
      }
      case "cancel": {
        const jobIds = this.#pick(one.picks).map(({ jobId }) => jobId);
        const outcomes = await ledger.cancel(jobIds);
        expect(outcomes.map((outcome) => outcome.kind)).toEqual(
          jobIds.map((jobId) => model.cancel(jobId)),
        );
        return;
      }
      case "leave":
        model.leave(one.worker);
        return ledger.leave(one.worker);
      case "age":
        return this.#age(one.steps * STEP_MS);
      case "list":
        return this.#list(ledger, one);
      case "inspect":
        return this.#inspect(ledger, one);
      case "expire":
      case "reject":
      case "rescue":
      case "evict":
        return this.#sweep(ledger, one);
      default:
        return one satisfies never;
    }
  }

  async #submit(
    ledger: Ledger,
    { items, whole }: Extract<Command, { verb: "submit" }>,
  ): Promise<void> {
    const nowMs = await this.#harness.nowMs();
    const jobs = items.map(({ delayMs, byTime, key, fingerprint, ...rest }) =>
      newJob({
        idempotency: key === null ? null : { key, fingerprint },
        ...rest,
        ...(byTime && delayMs > 0 ? { runAtMs: nowMs + delayMs } : { delayMs }),
      }),
    );
    this.#ids.push(...jobs.map((job) => job.jobId));
    const bound = { maxDepth: this.#maxDepth };
    const outcomes = await ledger.submit(jobs, whole ? { ...bound, whole } : bound);
    const answers = outcomes.map((outcome) =>
      outcome.kind === "full" ? outcome.depth : [outcome.kind, outcome.job.jobId],
    );
    const asked = jobs.map(({ jobId, payloadJson }, at) => {
      const { task, priority, maxAttempts, delayMs, key, fingerprint } = present(items[at]);
      return { jobId, payloadJson, task, priority, maxAttempts, delayMs, key, fingerprint };
    });
    expect(answers).toEqual(this.#model.submit(asked, this.#maxDepth, whole));
  }

  async #inspect(
    ledger: Ledger,
    { jobTimeoutMs, workerTimeoutMs, chunk }: Extract<Command, { verb: "inspect" }>,
  ): Promise<void> {
    const model = this.#model;
    const report = await ledger.inspect({ jobTimeoutMs, workerTimeoutMs, chunk });
    expect(report.waiting).toEqual(model.waiting().slice(0, chunk));
    const stuck = model.mayRescue(jobTimeoutMs, workerTimeoutMs, []).map((job) => job.jobId);
    expect(report.stuck).toHaveLength(Math.min(chunk, stuck.length));
    for (const job of report.stuck) expect(stuck).toContain(job.jobId);
    const oldest = report.oldestQueued;
    const dueAt = oldest === null ? null : present(model.find(oldest.jobId)).runAt;
    expect(dueAt).toBe(model.oldestDueAt());
    expect(report.workers).toEqual(await ledger.workers());
  }

  async #settle(ledger: Ledger, picks: readonly SettlePick[]): Promise<void> {
    const picked = this.#pick(picks);
    const records = await ledger.get(picked.map(({ jobId }) => jobId));
    const settlements = picked.map(({ jobId, given }, at) => {
      const job = this.#model.find(jobId);
      const owner = job?.workerId ?? WORKERS[0];
      const attempt = (job?.attempt ?? 1) - (given.held === "stale" ? 1 : 0);
      const startedAtMs = records[at]?.startedAtMs ?? null;
      const foreign = WORKERS.find((worker) => worker !== owner) ?? owner;
      const workerId = given.held === "foreign" ? foreign : owner;
      return { jobId, workerId, attempt, end: endOf(given, job?.payloadJson ?? "{}", startedAtMs) };
    });
    const expected = settlements.map(({ jobId, workerId, attempt, end }) =>
      this.#model.settle(jobId, workerId, attempt, end),
    );
    expect(await ledger.settle(settlements)).toEqual(expected);
  }

  async #list(ledger: Ledger, one: Extract<Command, { verb: "list" }>): Promise<void> {
    const { statuses, task, limit } = one;
    const filter = {
      limit,
      ...(statuses === null ? {} : { statuses }),
      ...(task === null ? {} : { task }),
    };
    const found: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      pages += 1;
      if (pages > 1_000) throw new Error("the list did not end within 1,000 pages");
      const page = await ledger.list(cursor === undefined ? filter : { ...filter, cursor });
      expect(page.jobs.length).toBeLessThanOrEqual(limit);
      found.push(...page.jobs.map((job) => job.jobId));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    const expected = this.#model.jobs
      .filter((job) => statuses === null || statuses.includes(job.status))
      .filter((job) => task === null || job.task === task)
      .map((job) => job.jobId)
      .toReversed();
    expect(found).toEqual(expected);
  }

  async #sweep(
    ledger: Ledger,
    one: Extract<Command, { verb: "expire" | "reject" | "rescue" | "evict" }>,
  ): Promise<void> {
    const model = this.#model;
    switch (one.verb) {
      case "expire": {
        const allowed = model.mayExpire(one.limitMs);
        const count = await ledger.expire({ waitLimitMs: one.limitMs, chunk: one.chunk });
        const taken = await this.#moved(allowed, count, one.chunk);
        for (const job of taken) model.expire(job);
        return;
      }
      case "reject": {
        const allowed = model.mayReject(one.workerId, one.graceMs, one.workerTimeoutMs);
        const count = await ledger.reject(one);
        const taken = await this.#moved(allowed, count, one.chunk);
        for (const job of taken) model.reject(job);
        return;
      }
      case "rescue": {
        const { jobTimeoutMs, workerTimeoutMs, gone, chunk } = one;
        const allowed = model.mayRescue(jobTimeoutMs, workerTimeoutMs, gone);
        const limit = { jobTimeoutMs, workerTimeoutMs, goneWorkerIds: gone, chunk };
        const rescued = await ledger.rescue(limit);
        const taken = await this.#moved(allowed, rescued.length, chunk);
        const expected = taken.map((job) => ({
          jobId: job.jobId,
          workerId: job.workerId,
          status: model.rescue(job),
        }));
        expect([...rescued].sort(byId)).toEqual(expected.sort(byId));
        model.forgetLostWorkers(workerTimeoutMs, gone);
        return;
      }
      case "evict": {
        const { ttlMs, keep, chunk } = one;
        const expected = model.evictable(ttlMs, keep, chunk);
        expect(await ledger.evict({ ttlMs, keep, chunk })).toBe(expected);
        return this.#forget(expected);
      }
      default:
        return one satisfies never;
    }
  }

  /** Those of the jobs allowed that the ledger has moved: as many as it says and as a chunk holds. */
  async #moved(allowed: readonly ModelJob[], count: number, chunk: number): Promise<ModelJob[]> {
    expect(count).toBe(Math.min(chunk, allowed.length));
    const found = await this.#harness.ledger.get(allowed.map((job) => job.jobId));
    const taken = allowed.filter((job, at) => found[at]?.status !== job.status);
    expect(taken).toHaveLength(count);
    return taken;
  }

  /** Those that are gone must be the ones that ended first; the model learns which of equal age. */
  async #forget(count: number): Promise<void> {
    const ended = this.#model.ended();
    const found = await this.#harness.ledger.get(ended.map((job) => job.jobId));
    const gone = ended.filter((_, at) => found[at] === null);
    const kept = ended.filter((_, at) => found[at] !== null);
    expect(gone).toHaveLength(count);
    const newestGone = Math.max(...gone.map((job) => job.finishedAt ?? Infinity));
    const oldestKept = Math.min(...kept.map((job) => job.finishedAt ?? -Infinity));
    expect(newestGone).toBeLessThanOrEqual(oldestKept);
    for (const job of gone) this.#model.forget(job.jobId);
  }

  /** The jobs that picks mean, each once; an unknown one where there is none yet. */
  #pick<P extends Pick>(picks: readonly P[]): { jobId: string; given: P }[] {
    const seen = new Map<string, P>();
    for (const given of picks) {
      const running = given.running ? this.#model.in("running").map((job) => job.jobId) : [];
      const from = running.length > 0 ? running : this.#ids;
      seen.set(from[given.at % Math.max(1, from.length)] ?? nextJobId(), given);
    }
    return [...seen].map(([jobId, given]) => ({ jobId, given }));
  }

  async #compare(): Promise<void> {
    const { ledger } = this.#harness;
    const model = this.#model;
    const found = await ledger.get(this.#ids);
    const nowMs = await this.#harness.nowMs();
    for (const [at, jobId] of this.#ids.entries()) {
      const expected = model.find(jobId);
      const job = found[at] ?? null;
      if (expected === undefined) expect(job).toBeNull();
      else this.#compareJob(present(job), expected, nowMs);
    }
    const queued = model.in("queued");
    const counts = await ledger.counts();
    expect(counts).toMatchObject({
      queued: queued.length,
      running: model.in("running").length,
      total: model.jobs.length,
    });
    expect(counts.queued + counts.running).toBeLessThanOrEqual(this.#maxDepth);
    const waits = queued.map((job) => model.now - job.runAt).filter((waitedMs) => waitedMs >= 0);
    const longest = waits.length === 0 ? null : Math.max(...waits);
    expectNear(counts.oldestQueuedMs, longest, "oldestQueuedMs");
    const workers = await ledger.workers();
    expect(workers.map(({ workerId, tasks }) => ({ workerId, tasks })).sort(byWorker)).toEqual(
      model.workers.map(({ workerId, tasks }) => ({ workerId, tasks })).sort(byWorker),
    );
  }

  /** Thousands of records per sequence: compared by hand, since `expect` takes longer than a ledger. */
  #compareJob(job: Job, expected: ModelJob, nowMs: number): void {
    const same = (field: keyof Job, value: unknown): void => {
      if (job[field] !== value)
        throw new Error(`${describeField(job, field)}, not ${JSON.stringify(value)}`);
    };
    same("status", expected.status);
    same("task", expected.task);
    same("priority", expected.priority);
    same("attempt", expected.attempt);
    same("maxAttempts", expected.maxAttempts);
    same("workerId", expected.workerId);
    same("progressJson", expected.progress);
    if (expected.error !== ANY) same("errorMessage", expected.error);
    else if (job.errorMessage === null) throw new Error(`${job.jobId} was ended without a message`);
    if (job.attempt > job.maxAttempts) throw new Error(`${job.jobId} was tried too often`);
    const near = (field: TimeField, time: number | null): void => {
      const value = job[field];
      const ageMs = value === null ? null : nowMs - value;
      expectNear(ageMs, time === null ? null : this.#model.now - time, describeField(job, field));
    };
    near("createdAtMs", expected.createdAt);
    near("runAtMs", expected.runAt);
    near("startedAtMs", expected.startedAt);
    near("finishedAtMs", expected.finishedAt);
    near("lastHeartbeatMs", expected.beatAt);
    near("cancelRequestedAtMs", expected.cancelAskedAt);
    const attempts = (of: readonly { attempt: number; workerId: string }[]): string =>
      of.map(({ attempt, workerId }) => `${String(attempt)} by ${workerId}`).join(", ");
    if (attempts(job.attemptErrors) !== attempts(expected.attemptErrors))
      throw new Error(describeField(job, "attemptErrors"));
    for (const [at, { atMs, errorMessage }] of job.attemptErrors.entries()) {
      const error = present(expected.attemptErrors[at]);
      if (errorMessage !== error.error) throw new Error(describeField(job, "attemptErrors"));
      expectNear(nowMs - atMs, this.#model.now - error.at, describeField(job, "attemptErrors"));
    }
    if (job.finishedAtMs === null) return;
    const end = [job.status, job.attempt, job.workerId, job.errorMessage].join(" | ");
    if (end !== (this.#ends.get(job.jobId) ?? end))
      throw new Error(`${job.jobId} ended as ${this.#ends.get(job.jobId) ?? ""}, then ${end}`);
    this.#ends.set(job.jobId, end);
  }
}

type TimeField = Extract<keyof Job, `${string}AtMs` | "lastHeartbeatMs">;

function describeField(job: Job, field: keyof Job): string {
  return `${field} of ${job.status} job ${job.jobId} is ${JSON.stringify(job[field])}`;
}

function endOf(
  { event, delayMs }: SettlePick,
  payloadJson: string,
  startedAtMs: number | null,
): End & ModelEnd {
  switch (event) {
    case "succeed":
      return { event, resultJson: `{"took":${String(delayMs)}}` };
    case "fail":
    case "time_out":
      return { event, errorMessage: `Error: ${event}` };
    case "stop":
      return { event };
    case "retry":
      return { event, errorMessage: "Error: again", delayMs };
    case "release":
      return { event, payloadJson, startedAtMs };
    default:
      return event satisfies never;
  }
}

/** Ages, which differ by what a real clock has moved on. */
function expectNear(ageMs: number | null, expectedMs: number | null, what: string): void {
  const near =
    ageMs === null || expectedMs === null
      ? ageMs === expectedMs
      : Math.abs(ageMs - expectedMs) < TOLERANCE_MS;
  if (!near) throw new Error(`${what}: ${String(ageMs)} ms ago, not ${String(expectedMs)}`);
}

function byId(a: { readonly jobId: string }, b: { readonly jobId: string }): number {
  return a.jobId < b.jobId ? -1 : 1;
}

function byWorker(a: { readonly workerId: string }, b: { readonly workerId: string }): number {
  return a.workerId < b.workerId ? -1 : 1;
}
