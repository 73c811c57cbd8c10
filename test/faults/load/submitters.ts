/**
 * Submits every planned job over HTTP until it is accepted: who gets no answer, 429 or 503 comes back
 * a little later, maybe to another server. Every job has an idempotency key, so that coming back after
 * a connection that broke makes no second job.
 */
import { parseJobId } from "../../../src/job/id.js";
import type { SeededRandom } from "../../sim/seeded-random.js";
import type { Limits } from "../limits.js";
import { Unanswered, type Call, type Client, type Reply } from "./client.js";
import type { JobPlan } from "./job-plan.js";
import { pause } from "../pause.js";

/** A job that was answered with 202. */
export interface Accepted {
  readonly jobId: string;
  readonly plan: JobPlan;
  /** What the answer to the cancel promised: `ended` is cancelled for good, `asked` may be. */
  cancel: "none" | "asked" | "ended";
}

export interface SubmitCounts {
  /** Tries without a server. */
  refused: number;
  /** Tries whose connection broke: whether they were recorded is found out by the next one. */
  broken: number;
  /** 429. */
  full: number;
  /** 503. */
  notReady: number;
  /** Longest time in which nothing was accepted although jobs were to be submitted, ms. */
  longestGapMs: number;
}

export interface SubmittersOptions {
  readonly client: Client;
  readonly urls: readonly string[];
  readonly plans: readonly JobPlan[];
  readonly random: SeededRandom;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly onAccepted: (accepted: Accepted) => void;
}

const SUBMITTERS = 128;

export class Submitters {
  readonly counts: SubmitCounts = { refused: 0, broken: 0, full: 0, notReady: 0, longestGapMs: 0 };
  readonly faults: string[] = [];
  readonly #options: SubmittersOptions;
  #next = 0;
  #acceptedMs = performance.now();

  constructor(options: SubmittersOptions) {
    this.#options = options;
  }

  /** Resolves when every job was accepted, or at the signal. */
  async run(): Promise<void> {
    this.#acceptedMs = performance.now();
    await Promise.all(Array.from({ length: SUBMITTERS }, () => this.#submitter()));
  }

  async #submitter(): Promise<void> {
    const { plans, signal } = this.#options;
    for (let plan = plans[this.#next]; plan !== undefined; plan = plans[this.#next]) {
      this.#next += 1;
      const jobId = await this.#submit(plan);
      if (jobId === null) {
        if (signal.aborted) return;
        continue;
      }
      this.#heardOfAcceptance();
      const accepted: Accepted = { jobId, plan, cancel: "none" };
      if (plan.cancels) await this.#cancel(accepted);
      this.#options.onAccepted(accepted);
    }
  }

  /** The id; null for a job that was refused in a way that must not be, or at the signal. */
  async #submit({ key, task, part, delayMs, maxAttempts }: JobPlan): Promise<string | null> {
    const { random, signal } = this.#options;
    while (!signal.aborted) {
      const reply = await this.#call({
        method: "POST",
        path: "/jobs",
        headers: { "idempotency-key": key },
        body: { task, input: part, delay_ms: delayMs, max_attempts: maxAttempts },
      });
      if (reply !== null) {
        const { status, json } = reply;
        if (status === 202) return parseJobId(String(json["job_id"]));
        if (status === 429) this.counts.full += 1;
        else if (status === 503) this.counts.notReady += 1;
        else {
          this.faults.push(`a submit was answered ${String(status)} ${JSON.stringify(json)}`);
          return null;
        }
      }
      await pause(random.between(50, 250));
    }
    return null;
  }

  async #cancel(accepted: Accepted): Promise<void> {
    accepted.cancel = "asked";
    const path = `/jobs/${accepted.jobId}`;
    const reply = await this.#call({ method: "DELETE", path });
    if (reply === null || reply.status === 202 || reply.status === 503) return;
    if (reply.status === 200) accepted.cancel = "ended";
    else if (reply.status === 409) accepted.cancel = "none";
    else this.faults.push(`a cancel was answered ${String(reply.status)}`);
  }

  /** Null when no answer came. */
  async #call(call: Omit<Call, "limitMs">): Promise<Reply | null> {
    const { client, urls, random, limits } = this.#options;
    const url = urls[random.between(0, urls.length - 1)] ?? "";
    try {
      return await client.call(url, { ...call, limitMs: limits.answerMs });
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      if (error.refused) this.counts.refused += 1;
      else this.counts.broken += 1;
      if (error.late) this.faults.push(`${call.method} ${call.path}: ${error.message}`);
      return null;
    }
  }

  #heardOfAcceptance(): void {
    const nowMs = performance.now();
    this.counts.longestGapMs = Math.max(this.counts.longestGapMs, nowMs - this.#acceptedMs);
    this.#acceptedMs = nowMs;
  }
}
