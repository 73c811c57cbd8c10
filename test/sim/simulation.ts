/**
 * A seeded world: users, workers that pause past their lease, die and come back, and sweepers, on
 * one ledger with a virtual clock. All chance comes from the seed, so a seed's trace is always the
 * same. After each step the whole ledger is looked at and the invariants are checked; what breaks
 * one is thrown with the seed and the trace up to there.
 *
 * At the end chance stops: workers are well, nobody submits, and every job must end within bounded
 * time.
 */
import type { Job } from "../../src/job/job.js";
import { isTerminal, TRANSITIONS, type Status } from "../../src/job/state.js";
import type { ClaimedJob, Ledger, Settlement } from "../../src/ledger/ledger.js";
import { newJob } from "../ledger/acts.js";
import { VirtualClock } from "../ledger/virtual-clock.js";
import { SeededRandom } from "./seeded-random.js";
import { SimWorker, type Expected, type Watchman } from "./sim-worker.js";

const WORKERS = 4;
const SLOTS = 3;
const TASKS = ["echo", "ocr"] as const;
const MAX_DEPTH = 16;
const WORKER_TIMEOUT_MS = 15_000;
const JOB_TIMEOUT_MS = 40_000;
const WAIT_LIMIT_MS = 45_000;
const KEEP = 25;
/** By then every attempt of every job has had its time, many times over. */
const SETTLING_ROUNDS = 300;

export interface SimulationPlan {
  readonly seed: number;
  readonly steps: number;
  readonly open: (clock: VirtualClock) => Ledger;
}

export interface SimulationReport {
  readonly trace: readonly string[];
  /** How often each thing happened: a simulation in which nothing happens proves nothing. */
  readonly tally: Readonly<Record<string, number>>;
}

/** @throws Error with the seed and the trace, when an invariant broke. */
export async function simulate(plan: SimulationPlan): Promise<SimulationReport> {
  const world = new World(plan);
  try {
    for (let step = 0; step < plan.steps; step += 1) await world.step();
    await world.settle();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `seed ${String(plan.seed)}, step ${String(world.steps)}: ${reason}\n${world.trace.join("\n")}`,
      { cause: error },
    );
  }
  return { trace: world.trace, tally: Object.fromEntries(world.tally) };
}

class World implements Watchman {
  readonly trace: string[] = [];
  readonly tally = new Map<string, number>();
  steps = 0;
  readonly #clock = new VirtualClock();
  readonly #startMs = this.#clock.nowMs();
  readonly #random: SeededRandom;
  readonly #ledger: Ledger;
  #workers: SimWorker[] = [];
  #bornWorkers = 0;
  #submitted = 0;
  readonly #payloads = new Map<string, string>();
  /** Ids that retention has not been seen to forget. */
  readonly #known = new Set<string>();
  /** `job/attempt` that are handed out and were not released. */
  readonly #handedOut = new Set<string>();
  /** What an ended job looked like first. */
  readonly #ends = new Map<string, string>();
  readonly #endings = new Map<string, number>();

  constructor({ seed, open }: SimulationPlan) {
    this.#random = new SeededRandom(seed);
    this.#ledger = open(this.#clock);
    while (this.#workers.length < WORKERS) this.#workers.push(this.#newWorker());
  }

  async step(): Promise<void> {
    this.steps += 1;
    const random = this.#random;
    const die = random.between(1, 100);
    if (die <= 20) this.#passTime(random.between(1, 6_000));
    else if (die <= 40) await this.#submit();
    else if (die <= 75) await this.#workerTurn(random.between(0, WORKERS - 1));
    else if (die <= 82) await this.#cancel();
    else if (die <= 85) this.#pause(random.between(0, WORKERS - 1));
    else if (die <= 87) this.#kill(random.between(0, WORKERS - 1));
    else await this.#sweep();
    await this.#check();
  }

  /** Everyone is well and nothing new comes: all that is left must end. */
  async settle(): Promise<void> {
    for (const worker of this.#workers) worker.pausedUntilMs = 0;
    for (let round = 0; round < SETTLING_ROUNDS; round += 1) {
      this.steps += 1;
      this.#passTime(5_000);
      for (const [at] of this.#workers.entries()) await this.#workerTurn(at);
      await this.#sweep();
      await this.#check();
      const { queued, running } = await this.#ledger.counts();
      if (queued + running === 0) return;
    }
    throw new Error("jobs are left that never end");
  }

  claimed(workerId: string, jobs: readonly ClaimedJob[]): void {
    for (const { job, payloadJson } of jobs) {
      this.#say(workerId, `claims ${name(job)}`);
      if (payloadJson !== this.#payloads.get(job.jobId))
        throw new Error(`${name(job)} was handed out with another payload`);
      const held = `${job.jobId}/${String(job.attempt)}`;
      if (this.#handedOut.has(held)) throw new Error(`${name(job)} was handed out twice`);
      this.#handedOut.add(held);
      if (job.runAtMs > this.#clock.nowMs()) throw new Error(`${name(job)} is not due yet`);
    }
  }

  async expectSettle(settlements: readonly Settlement[]): Promise<Expected[]> {
    const jobs = await this.#ledger.get(settlements.map(({ jobId }) => jobId));
    return settlements.map(({ workerId, attempt, end }, at) => {
      const job = jobs[at];
      if (job?.status !== "running") return null;
      if (job.workerId !== workerId || job.attempt !== attempt) return null;
      const { to } = TRANSITIONS[end.event];
      if (isTerminal(to)) return to;
      if (job.cancelRequestedAtMs !== null) return "cancelled";
      return end.event === "retry" && job.attempt >= job.maxAttempts ? null : to;
    });
  }

  settled(
    settlements: readonly Settlement[],
    expected: readonly Expected[],
    answers: readonly (Status | null)[],
  ): void {
    for (const [at, { jobId, workerId, attempt, end }] of settlements.entries()) {
      const answer = answers[at] ?? null;
      this.#say(workerId, `${end.event} ${jobId}/${String(attempt)}: ${answer ?? "refused"}`);
      if (answer !== expected[at])
        throw new Error(`${end.event} of ${jobId} was answered ${String(answer)}`);
      if (answer !== null && isTerminal(answer)) this.#countEnding(jobId);
      if (answer === "queued" && end.event === "release")
        this.#handedOut.delete(`${jobId}/${String(attempt)}`);
    }
  }

  told(workerId: string, what: string): void {
    this.#say(workerId, what);
  }

  #say(who: string, what: string): void {
    const atMs = this.#clock.nowMs() - this.#startMs;
    this.trace.push(`${String(atMs).padStart(8)} ${who} ${what}`);
    const kind = /^\w+/.exec(what)?.[0] ?? what;
    const outcome = what.endsWith(": refused") ? `${kind} refused` : kind;
    this.tally.set(outcome, (this.tally.get(outcome) ?? 0) + 1);
  }

  #countEnding(jobId: string): void {
    const endings = (this.#endings.get(jobId) ?? 0) + 1;
    this.#endings.set(jobId, endings);
    if (endings > 1) throw new Error(`${jobId} was ended twice`);
  }

  #newWorker(): SimWorker {
    this.#bornWorkers += 1;
    const workerId = `worker-${String(this.#bornWorkers).padStart(8, "0")}`;
    const tasks = this.#random.oneIn(3) ? [this.#random.pick(TASKS)] : TASKS;
    return new SimWorker(workerId, SLOTS, tasks);
  }

  #passTime(ms: number): void {
    this.#clock.advance(ms);
  }

  async #submit(): Promise<void> {
    const random = this.#random;
    const jobs = Array.from({ length: random.between(1, 4) }, () => {
      this.#submitted += 1;
      const jobId = String(this.#submitted).padStart(26, "0");
      return newJob({
        jobId,
        task: random.pick(TASKS),
        priority: random.between(-1, 1),
        maxAttempts: random.between(1, 4),
        runAtMs: random.oneIn(4) ? this.#clock.nowMs() + random.between(0, 20_000) : null,
        payloadJson: `{"schema_version":1,"task":"x","input":"${jobId}"}`,
      });
    });
    const outcomes = await this.#ledger.submit(jobs, { maxDepth: MAX_DEPTH });
    for (const [at, outcome] of outcomes.entries()) {
      const job = jobs[at];
      if (job === undefined) throw new Error("more outcomes than jobs");
      if (outcome.kind === "full") this.#say("user", `refused at ${String(outcome.depth)}`);
      else {
        this.#say("user", `submits ${name(outcome.job)}`);
        this.#known.add(job.jobId);
        this.#payloads.set(job.jobId, job.payloadJson);
      }
    }
  }

  async #cancel(): Promise<void> {
    if (this.#submitted === 0) return;
    const number = this.#random.between(Math.max(1, this.#submitted - 20), this.#submitted);
    const jobId = String(number).padStart(26, "0");
    const [outcome] = await this.#ledger.cancel([jobId]);
    this.#say("user", `cancels ${jobId}: ${outcome?.kind ?? ""}`);
    if (outcome?.kind === "cancelled") this.#countEnding(jobId);
  }

  async #workerTurn(at: number): Promise<void> {
    const worker = this.#workers[at];
    const nowMs = this.#clock.nowMs();
    if (worker === undefined || worker.pausedUntilMs > nowMs) return;
    await worker.turn(this.#ledger, nowMs, this.#random, this);
  }

  #pause(at: number): void {
    const worker = this.#workers[at];
    if (worker === undefined) return;
    const forMs = this.#random.between(1_000, 3 * JOB_TIMEOUT_MS);
    worker.pausedUntilMs = this.#clock.nowMs() + forMs;
    this.#say(worker.workerId, `pauses with ${String(worker.busy)} for ${String(forMs)}`);
  }

  /** Gone with all that it held; another process takes its place. */
  #kill(at: number): void {
    const worker = this.#workers[at];
    if (worker === undefined) return;
    this.#say(worker.workerId, `dies with ${String(worker.busy)}`);
    this.#workers = this.#workers.with(at, this.#newWorker());
  }

  async #sweep(): Promise<void> {
    const ledger = this.#ledger;
    const chunk = this.#random.between(1, 6);
    const rescued = await ledger.rescue({
      jobTimeoutMs: JOB_TIMEOUT_MS,
      workerTimeoutMs: WORKER_TIMEOUT_MS,
      goneWorkerIds: [],
      chunk,
    });
    for (const { jobId, workerId, status } of rescued) {
      this.#say("sweeper", `rescues ${jobId} of ${workerId}: ${status}`);
      if (isTerminal(status)) this.#countEnding(jobId);
    }
    const before = await ledger.get([...this.#known]);
    const expired = await ledger.expire({ waitLimitMs: WAIT_LIMIT_MS, chunk });
    const after = await ledger.get([...this.#known]);
    const changed = after.filter((job, at) => job?.status !== before[at]?.status);
    if (changed.length !== expired) throw new Error("expire did not do what it said");
    for (const job of changed) {
      if (job?.status !== "timed_out") throw new Error("expire did more than it may");
      this.#say("sweeper", `expires ${name(job)}`);
      this.#countEnding(job.jobId);
    }
    await this.#evict(chunk);
  }

  async #evict(chunk: number): Promise<void> {
    const known = [...this.#known];
    const before = await this.#ledger.get(known);
    const evicted = await this.#ledger.evict({ ttlMs: 200_000, keep: KEEP, chunk });
    const after = await this.#ledger.get(known);
    const gone = before.flatMap((job, at) => (job !== null && after[at] === null ? [job] : []));
    if (gone.length !== evicted) throw new Error("evict did not do what it said");
    for (const job of gone) {
      if (!isTerminal(job.status)) throw new Error(`${name(job)} was forgotten before its end`);
      this.#known.delete(job.jobId);
    }
    if (evicted > 0) this.#say("sweeper", `forgets ${String(evicted)}`);
  }

  async #check(): Promise<void> {
    const known = [...this.#known];
    const jobs = await this.#ledger.get(known);
    const counts = await this.#ledger.counts();
    let [queued, running] = [0, 0];
    for (const [at, job] of jobs.entries()) {
      if (job === null) throw new Error(`${known[at] ?? ""} has vanished`);
      if (job.status === "queued") queued += 1;
      if (job.status === "running") running += 1;
      this.#checkJob(job);
    }
    if (counts.queued !== queued || counts.running !== running || counts.total !== jobs.length)
      throw new Error(`counts say ${JSON.stringify(counts)}, the records say otherwise`);
    if (queued + running > MAX_DEPTH) throw new Error("the depth is beyond the bound");
  }

  #checkJob(job: Job): void {
    if (job.attempt > job.maxAttempts) throw new Error(`${name(job)} was tried too often`);
    if (job.status === "queued" && job.cancelRequestedAtMs !== null)
      throw new Error(`${name(job)} went back to the queue after a request to cancel`);
    const hasMessage = job.errorMessage !== null;
    const mayHaveMessage = ["failed", "timed_out", "queued"].includes(job.status);
    if (hasMessage && !mayHaveMessage) throw new Error(`${name(job)} carries a message`);
    if (isTerminal(job.status) !== (job.finishedAtMs !== null))
      throw new Error(`${name(job)} has an end without a time, or a time without an end`);
    if (!isTerminal(job.status)) return;
    const end = JSON.stringify(job);
    const first = this.#ends.get(job.jobId) ?? end;
    this.#ends.set(job.jobId, first);
    if (first !== end) throw new Error(`${name(job)} has changed after its end`);
    if (this.#endings.get(job.jobId) !== 1) throw new Error(`${name(job)} ended unseen`);
  }
}

function name(job: Job): string {
  return `${job.jobId}/${String(job.attempt)} (${job.status})`;
}
