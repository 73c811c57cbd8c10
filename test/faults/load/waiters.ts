/**
 * Hundreds of long polls at once, spread over the jobs: each waiter takes a job that was just accepted
 * and polls, with time limits of its own, until the job has ended; then it asks for the result. What
 * each saw is kept for the books.
 */
import type { SeededRandom } from "../../sim/seeded-random.js";
import type { Limits } from "../limits.js";
import { Unanswered, type Client, type Reply } from "./client.js";
import type { Accepted } from "./submitters.js";
import { pause } from "../pause.js";

/** What one waiter saw of its job's end. */
export interface Sighting {
  readonly accepted: Accepted;
  readonly state: string;
  readonly error: string | null;
  /** The result's `data`; undefined where the job has none. */
  readonly data: unknown;
  /** Wall time, ms: when the poll that brought the end began, and when it was answered. */
  readonly askedMs: number;
  readonly answeredMs: number;
}

/** A poll that was answered with a job that had not ended. */
export interface EmptyPoll {
  readonly jobId: string;
  readonly askedMs: number;
  readonly answeredMs: number;
}

export interface WaitersOptions {
  readonly client: Client;
  readonly urls: readonly string[];
  readonly random: SeededRandom;
  readonly limits: Limits;
  readonly count: number;
  /** Shortest and longest time limit of a poll. */
  readonly pollMs: readonly [number, number];
  readonly signal: AbortSignal;
}

const TERMINAL: ReadonlySet<string> = new Set(["done", "failed", "timeout", "cancelled"]);

export class Waiters {
  readonly sightings: Sighting[] = [];
  readonly emptyPolls: EmptyPoll[] = [];
  readonly faults: string[] = [];
  polls = 0;
  /** Polls that had no answer, or a 503, and were asked again. */
  repeated = 0;
  /** Polls under way, and the most there were at once. */
  #open = 0;
  mostAtOnce = 0;
  readonly #options: WaitersOptions;
  readonly #fresh: Accepted[] = [];
  readonly #idle: ((accepted: Accepted | null) => void)[] = [];
  #closed = false;

  constructor(options: WaitersOptions) {
    this.#options = options;
  }

  /** A job that may be waited for. Waited for are those for which a waiter is free, the newest first. */
  offer(accepted: Accepted): void {
    const idle = this.#idle.pop();
    if (idle === undefined) this.#fresh.push(accepted);
    else idle(accepted);
  }

  /** There will be no more jobs: who still waits goes on to the end of their job. */
  close(): void {
    this.#closed = true;
    this.#fresh.length = 0;
    for (const idle of this.#idle.splice(0)) idle(null);
  }

  /** Resolves after `close`, when every wait is over. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#waiter()));
  }

  async #waiter(): Promise<void> {
    for (let job = await this.#take(); job !== null; job = await this.#take())
      await this.#wait(job);
  }

  #take(): Promise<Accepted | null> {
    const job = this.#fresh.pop();
    if (job !== undefined) return Promise.resolve(job);
    if (this.#closed) return Promise.resolve(null);
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  async #wait(accepted: Accepted): Promise<void> {
    const { random, pollMs, signal, limits } = this.#options;
    const { jobId } = accepted;
    while (!signal.aborted) {
      const limitMs = random.between(...pollMs);
      const askedMs = Date.now();
      this.polls += 1;
      this.mostAtOnce = Math.max(this.mostAtOnce, (this.#open += 1));
      const path = `/jobs/${jobId}/wait?timeout=${String(limitMs)}`;
      const reply = await this.#get(path, limitMs + limits.answerMs);
      this.#open -= 1;
      const answeredMs = Date.now();
      if (reply === null) continue;
      const state = String(reply.json["state"]);
      if (!TERMINAL.has(state)) {
        this.emptyPolls.push({ jobId, askedMs, answeredMs });
        continue;
      }
      const error = typeof reply.json["error"] === "string" ? reply.json["error"] : null;
      const data = await this.#result(jobId, state);
      this.sightings.push({ accepted, state, error, data, askedMs, answeredMs });
      return;
    }
  }

  async #result(jobId: string, state: string): Promise<unknown> {
    const { signal, limits } = this.#options;
    while (!signal.aborted) {
      const reply = await this.#get(`/jobs/${jobId}/result`, limits.answerMs, state !== "done");
      if (reply !== null) return state === "done" ? reply.json["data"] : undefined;
    }
    return undefined;
  }

  /** Null when it is to be asked again. @param unfinished whether 409 is the right answer. */
  async #get(path: string, limitMs: number, unfinished = false): Promise<Reply | null> {
    const { client, urls, random } = this.#options;
    const url = urls[random.between(0, urls.length - 1)] ?? "";
    try {
      const reply = await client.call(url, { method: "GET", path, limitMs });
      if (reply.status === (unfinished ? 409 : 200)) return reply;
      if (reply.status !== 503)
        this.faults.push(
          `GET ${path} was answered ${String(reply.status)}, ${JSON.stringify(reply.json)}`,
        );
    } catch (error) {
      if (!(error instanceof Unanswered)) throw error;
      if (error.late) this.faults.push(`GET ${path}: ${error.message}`);
    }
    this.repeated += 1;
    await pause(random.between(50, 250));
    return null;
  }
}
