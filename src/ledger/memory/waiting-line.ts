/**
 * The queued jobs, in the orders that the verbs ask for: per task by priority, due time and id (what
 * a claim takes), per task by due time (what is not due yet), and over all tasks by due time (what
 * has waited longest). A job is in exactly one of the first two and in the third; every operation is
 * O(log n), whatever else waits.
 */
import type { Job } from "../../job/job.js";
import type { Entry } from "./entry.js";
import { Heap, type HeapEntry } from "./heap.js";

interface TaskLine {
  readonly ready: Heap<Entry>;
  readonly delayed: Heap<Entry>;
}

interface Place {
  line: Heap<Entry>;
  inLine: HeapEntry<Entry>;
  readonly inOrderOfDueTime: HeapEntry<Entry>;
}

export class WaitingLine {
  readonly #byTask = new Map<string, TaskLine>();
  readonly #byDueTime = new Heap<Entry>(isDueBefore);
  readonly #places = new Map<Entry, Place>();

  get size(): number {
    return this.#places.size;
  }

  add(entry: Entry, nowMs: number): void {
    const { task } = entry.job;
    let lines = this.#byTask.get(task);
    if (lines === undefined) {
      lines = { ready: new Heap(isClaimedBefore), delayed: new Heap(isDueBefore) };
      this.#byTask.set(task, lines);
    }
    const line = entry.job.runAtMs <= nowMs ? lines.ready : lines.delayed;
    this.#places.set(entry, {
      line,
      inLine: line.push(entry),
      inOrderOfDueTime: this.#byDueTime.push(entry),
    });
  }

  /** Before the entry's record changes: the heaps compare by it. */
  remove(entry: Entry): void {
    const place = this.#places.get(entry);
    if (place === undefined) return;
    this.#places.delete(entry);
    place.line.remove(place.inLine);
    this.#byDueTime.remove(place.inOrderOfDueTime);
    const { task } = entry.job;
    const lines = this.#byTask.get(task);
    if (lines?.ready.size === 0 && lines.delayed.size === 0) this.#byTask.delete(task);
  }

  /** The job of these tasks that a claim takes first; it stays in the line. */
  next(tasks: Iterable<string>, nowMs: number): Entry | undefined {
    let best: Entry | undefined;
    for (const task of tasks) {
      const lines = this.#byTask.get(task);
      if (lines === undefined) continue;
      this.#promote(lines, nowMs);
      const first = lines.ready.peek();
      if (first !== undefined && (best === undefined || isClaimedBefore(first, best))) best = first;
    }
    return best;
  }

  /** The job that has been due for longest (or is due soonest). */
  longestWaiting(): Entry | undefined {
    return this.#byDueTime.peek();
  }

  /** How many jobs of a task wait. */
  sizeOf(task: string): number {
    const lines = this.#byTask.get(task);
    return lines === undefined ? 0 : lines.ready.size + lines.delayed.size;
  }

  /** The tasks of which jobs wait. */
  tasks(): string[] {
    return [...this.#byTask.keys()];
  }

  /** Up to `limit` jobs of a task that have been due for longer than `waitedMs`. */
  overdue(task: string, waitedMs: number, limit: number, nowMs: number): Entry[] {
    const found: Entry[] = [];
    const lines = this.#byTask.get(task);
    if (lines === undefined) return found;
    this.#promote(lines, nowMs);
    for (const entry of lines.ready.values()) {
      if (found.length >= limit) break;
      if (nowMs - entry.job.runAtMs > waitedMs) found.push(entry);
    }
    return found;
  }

  /** Moves what has become due to the ready ones. */
  #promote(lines: TaskLine, nowMs: number): void {
    for (;;) {
      const entry = lines.delayed.peek();
      if (entry === undefined || entry.job.runAtMs > nowMs) return;
      const place = this.#places.get(entry);
      if (place === undefined) throw new Error(`job ${entry.job.jobId} waits without a place`);
      lines.delayed.remove(place.inLine);
      place.line = lines.ready;
      place.inLine = lines.ready.push(entry);
    }
  }
}

function isDueBefore(a: Entry, b: Entry): boolean {
  return compareDueTime(a.job, b.job) < 0;
}

function isClaimedBefore(a: Entry, b: Entry): boolean {
  const byPriority = b.job.priority - a.job.priority;
  return byPriority === 0 ? compareDueTime(a.job, b.job) < 0 : byPriority < 0;
}

function compareDueTime(a: Job, b: Job): number {
  if (a.runAtMs !== b.runAtMs) return a.runAtMs - b.runAtMs;
  return a.jobId < b.jobId ? -1 : 1;
}
