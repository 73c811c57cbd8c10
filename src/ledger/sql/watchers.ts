/**
 * Who watches which job, and what was last seen of it from outside. Own changes are told at once, by
 * whoever made them. When another connection has changed something, what has changed is looked at, if
 * that can be told for less than a look at all that is watched costs; else all of it, some hundred at a
 * time so that other calls pass between. Only what differs is told. What this process reads of a
 * watched job by the way counts as a look: who subscribes looks, and need not be told to look again.
 *
 * What a listener throws is dropped: the change has been made, and the others must hear of it.
 */
import type { Unsubscribe } from "../ledger.js";

/** What a look finds of a job: differs when what others can see of it differs. */
export type Look = number | string;
export type LookOf = readonly [jobId: string, look: Look];

/** What has changed since the last time it was asked for. */
export interface Recent {
  /** All that have ended since. */
  readonly ended: Iterable<LookOf>;
  /** All that run now. */
  readonly running: Iterable<LookOf>;
  /** Whether any were forgotten. */
  readonly forgotten: boolean;
}

export interface WatchersPorts {
  /** Answers for each job, in order. */
  readonly look: (jobIds: readonly string[]) => Promise<readonly Look[]>;
  /** Left out: only `look` can tell. */
  readonly changes?: {
    /** Null when it can't be told, or would be more than `limit` ended or running jobs. */
    readonly recent: (limit: number) => Promise<Recent | null>;
    readonly standing: (look: Look) => "queued" | "running" | "over";
  };
}

/** Half a millisecond at SQLite's thread, some ms at a PostgreSQL server. */
export const LOOK_CHUNK = 500;
/** So many rows keep the ledger for some 50 ms; beyond them a look at all in chunks is kinder to others. */
const MOST_RECENT = 16_384;

/** In a list of those of one job, in the order in which they came. */
class Listener {
  /** Null: has left. */
  call: (() => void) | null;
  previous: Listener | null;
  /** Grows from one to the next. */
  readonly place: number;
  /** Stays when it has left, for whoever is at it. */
  next: Listener | null = null;

  constructor(call: () => void, previous: Listener | null, place: number) {
    this.call = call;
    this.previous = previous;
    this.place = place;
  }
}

class Listeners {
  first: Listener | null = null;
  #last: Listener | null = null;
  #added = 0;
  /** Of a job, as `look` answers; undefined before the first look, which then tells in any case. */
  seen: Look | undefined = undefined;

  add(call: () => void): Listener {
    this.#added += 1;
    const listener = new Listener(call, this.#last, this.#added);
    if (this.#last === null) this.first = listener;
    else this.#last.next = listener;
    this.#last = listener;
    return listener;
  }

  /** Idempotent. */
  remove(listener: Listener): void {
    if (listener.call === null) return;
    listener.call = null;
    const { previous, next } = listener;
    if (previous === null) this.first = next;
    else previous.next = next;
    if (next === null) this.#last = previous;
    else next.previous = previous;
  }

  /** Those that are there now; one that is removed meanwhile is not called. */
  tell(): void {
    const lastPlace = this.#added;
    for (let listener = this.first; listener !== null; listener = listener.next) {
      if (listener.place > lastPlace) return;
      try {
        listener.call?.();
      } catch {
        // See above: a listener's fault is its own.
      }
    }
  }
}

export class Watchers {
  readonly #watched = new Map<string, Listeners>();
  #work = new Listeners();
  readonly #ports: WatchersPorts;
  #looking: Promise<boolean> | null = null;
  #lookAgain = false;
  #begun = false;

  constructor(ports: WatchersPorts) {
    this.#ports = ports;
  }

  /** @param known what a look would have found when the caller last looked: others have been told of it. */
  watch(jobId: string, call: () => void, known?: Look): Unsubscribe {
    let listeners = this.#watched.get(jobId);
    if (listeners === undefined) {
      listeners = new Listeners();
      this.#watched.set(jobId, listeners);
    }
    if (this.size > LOOK_CHUNK) this.#begin();
    if (known !== undefined) listeners.seen = known;
    const of = listeners;
    const listener = of.add(call);
    return () => {
      of.remove(listener);
      if (of.first === null && this.#watched.get(jobId) === of) this.#watched.delete(jobId);
    };
  }

  onWork(call: () => void): Unsubscribe {
    const of = this.#work;
    const listener = of.add(call);
    return () => {
      of.remove(listener);
    };
  }

  /** How many jobs are watched. */
  get size(): number {
    return this.#watched.size;
  }

  get jobIds(): string[] {
    return [...this.#watched.keys()];
  }

  /** By this process: all are told, and so the next look is the first that counts. */
  changed(jobId: string): void {
    const watched = this.#watched.get(jobId);
    if (watched === undefined) return;
    watched.seen = undefined;
    watched.tell();
  }

  /**
   * This process has looked at the job: tells when that differs from the last look. The first look at
   * it tells nobody: whoever is there has yet to look, and will see as much.
   */
  saw(jobId: string, look: Look): void {
    const watched = this.#watched.get(jobId);
    if (watched === undefined || watched.seen === look) return;
    const isFirst = watched.seen === undefined;
    watched.seen = look;
    if (!isFirst) watched.tell();
  }

  work(): void {
    this.#work.tell();
  }

  all(): void {
    for (const jobId of this.jobIds) this.changed(jobId);
    this.work();
  }

  clear(): void {
    this.#watched.clear();
    this.#work = new Listeners();
  }

  /**
   * Looks at what has changed; a request during a look makes one more.
   * @returns whether all that is watched was looked at.
   */
  look(): Promise<boolean> {
    this.#lookAgain = true;
    this.#looking ??= this.#lookOn().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #lookOn(): Promise<boolean> {
    let all = true;
    while (this.#lookAgain) {
      this.#lookAgain = false;
      const jobIds = await this.#unclear();
      all = jobIds === null;
      await this.lookAt(jobIds ?? this.jobIds);
    }
    return all;
  }

  /** Looks at these. */
  async lookAt(jobIds: readonly string[]): Promise<void> {
    for (let at = 0; at < jobIds.length; at += LOOK_CHUNK) {
      const chunk = jobIds.slice(at, at + LOOK_CHUNK);
      const looks = await this.#ports.look(chunk);
      for (const [index, jobId] of chunk.entries()) this.#found(jobId, looks[index]);
    }
  }

  /** The first time that recent changes are asked for they can't be told: better now than when many more are watched. */
  #begin(): void {
    if (this.#begun || this.#ports.changes === undefined) return;
    this.#begun = true;
    // Whoever learns of a change looks again, and says why it can't.
    this.look().catch(() => undefined);
  }

  /** Tells of what has ended or runs, and answers which jobs have to be looked at to know more; null: all. */
  async #unclear(): Promise<string[] | null> {
    const { changes } = this.#ports;
    if (changes === undefined || this.size <= LOOK_CHUNK) return null;
    const recent = await changes.recent(Math.min(MOST_RECENT, this.size));
    if (recent === null) return null;
    for (const [jobId, look] of recent.ended) this.#found(jobId, look);
    const running = new Set<string>();
    for (const [jobId, look] of recent.running) {
      running.add(jobId);
      this.#found(jobId, look);
    }
    const isUnclear = (jobId: string, seen: Look): boolean => {
      const standing = changes.standing(seen);
      // What ran and does not any more, without an end, is queued again or forgotten.
      return standing === "running" ? !running.has(jobId) : standing === "over" && recent.forgotten;
    };
    const unclear: string[] = [];
    for (const [jobId, { seen }] of this.#watched)
      if (seen === undefined || isUnclear(jobId, seen)) unclear.push(jobId);
    return unclear;
  }

  #found(jobId: string, look: Look | undefined): void {
    const watched = this.#watched.get(jobId);
    if (watched === undefined || watched.seen === look) return;
    watched.seen = look;
    watched.tell();
  }
}
