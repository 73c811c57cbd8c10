/**
 * What a handler says while it runs, held to bounds where it runs: progress is coalesced (the newest
 * wins), log lines are cut and limited in rate. A handler that reports in a tight loop costs its own
 * time, never the memory of who listens. After `end` everything is dropped.
 */
import { MAX_PROGRESS_BYTES, cleanText } from "../job/limits.js";
import type { Clock } from "../runtime/clock.js";
import { describe } from "./failure.js";
import { encodeJson } from "./json.js";
import type { TaskLog } from "./task.js";

export type ReportLevel = keyof TaskLog;

export interface ReportSink {
  progress(json: string): void;
  /** `fieldsJson`: an object as JSON text. */
  log(level: ReportLevel, message: string, fieldsJson: string): void;
}

/** Ten a second look alive to an eye, and cost nothing. */
const PROGRESS_GAP_MS = 100;
const MAX_MESSAGE_CHARS = 2_000;
const MAX_FIELDS_BYTES = 4_096;
/** A run may log a burst at once, then this many lines a second; the rest is counted. */
const LOG_BURST = 200;
const LOG_PER_SECOND = 50;

export class Reports {
  readonly #clock: Clock;
  readonly #sink: ReportSink;
  #ended = false;

  #waiting: string | null = null;
  #sentMs = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | null = null;
  #progressRefused = false;

  #tokens = LOG_BURST;
  #refilledMs: number;
  #dropped = 0;

  constructor(clock: Clock, sink: ReportSink) {
    this.#clock = clock;
    this.#sink = sink;
    this.#refilledMs = clock.monotonicMs();
  }

  /** What is no JSON, or too large, is dropped with one warning in the log: a report is no reason to fail a job. */
  progress(value: unknown): void {
    if (this.#ended) return;
    let json: string;
    try {
      json = encodeJson(value, "progress", MAX_PROGRESS_BYTES);
    } catch (error) {
      if (!this.#progressRefused) this.log("warn", `progress was dropped: ${describe(error)}`);
      this.#progressRefused = true;
      return;
    }
    this.#waiting = json;
    // A handler that spins lets no timer fire, so the call itself looks at the clock.
    const leftMs = this.#sentMs + PROGRESS_GAP_MS - this.#clock.monotonicMs();
    if (leftMs <= 0) this.#flush();
    else
      this.#cancelTimer ??= this.#clock.timer(leftMs, () => {
        this.#flush();
      });
  }

  log(level: ReportLevel, message: string, fields?: Readonly<Record<string, unknown>>): void {
    if (this.#ended || !this.#takeToken()) return;
    if (this.#dropped > 0) this.#tellDropped();
    // Handlers in JavaScript pass what they like.
    const text: unknown = message;
    this.#sink.log(level, cleanText(String(text), MAX_MESSAGE_CHARS), fieldsText(fields));
  }

  /** Sends what waits, then falls silent. */
  end(): void {
    if (this.#ended) return;
    if (this.#waiting !== null) this.#flush();
    if (this.#dropped > 0) this.#tellDropped();
    this.mute();
  }

  /** Falls silent at once. */
  mute(): void {
    this.#ended = true;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    if (this.#ended || this.#waiting === null) return;
    const json = this.#waiting;
    this.#waiting = null;
    this.#sentMs = this.#clock.monotonicMs();
    this.#sink.progress(json);
  }

  #takeToken(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const earned = ((nowMs - this.#refilledMs) / 1_000) * LOG_PER_SECOND;
    this.#tokens = Math.min(LOG_BURST, this.#tokens + earned);
    this.#refilledMs = nowMs;
    if (this.#tokens < 1) {
      this.#dropped += 1;
      return false;
    }
    this.#tokens -= 1;
    return true;
  }

  #tellDropped(): void {
    const dropped = this.#dropped;
    this.#dropped = 0;
    this.#sink.log("warn", "log lines were dropped: too many", JSON.stringify({ dropped }));
  }
}

function fieldsText(fields: Readonly<Record<string, unknown>> | undefined): string {
  if (fields === undefined) return "{}";
  try {
    // A log takes what it can get: BigInt as text, errors by their message.
    const text = JSON.stringify(fields, (_key, value: unknown) => {
      if (typeof value === "bigint") return String(value);
      return value instanceof Error ? describe(value) : value;
    }) as string | undefined;
    if (text?.startsWith("{") !== true) return "{}";
    return Buffer.byteLength(text) <= MAX_FIELDS_BYTES
      ? text
      : JSON.stringify({ fields: `dropped: more than ${String(MAX_FIELDS_BYTES)} bytes` });
  } catch (error) {
    return JSON.stringify({ fields: `dropped: ${describe(error)}` });
  }
}
