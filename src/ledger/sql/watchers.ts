/**
 * Who watches which job, and what was last seen of it from outside. Own changes are told at once, by
 * whoever made them. When another connection has changed something, all watched jobs are looked at,
 * some hundred at a time so that other calls pass between, and only those that differ are told. What
 * a listener throws is dropped: the change has been made, and the others must hear of it.
 */
import type { Unsubscribe } from "../ledger.js";

/** What a look finds of a job: differs when what others can see of it differs. */
export type Look = number | string;

/** Half a millisecond at SQLite's thread, some ms at a PostgreSQL server. */
const LOOK_CHUNK = 500;

type Listener = () => void;

interface Watched {
  readonly listeners: Set<{ readonly call: Listener }>;
  /** As `look` answers; undefined before the first look, which then tells in any case. */
  seen: Look | undefined;
}

export class Watchers {
  readonly #watched = new Map<string, Watched>();
  readonly #work = new Set<{ readonly call: Listener }>();
  readonly #look: (jobIds: readonly string[]) => Promise<readonly Look[]>;
  #looking = false;
  #lookAgain = false;

  /** @param look answers for each job, in order. */
  constructor(look: (jobIds: readonly string[]) => Promise<readonly Look[]>) {
    this.#look = look;
  }

  watch(jobId: string, call: Listener): Unsubscribe {
    let watched = this.#watched.get(jobId);
    if (watched === undefined) {
      watched = { listeners: new Set(), seen: undefined };
      this.#watched.set(jobId, watched);
    }
    const listener = { call };
    watched.listeners.add(listener);
    return () => {
      const present = this.#watched.get(jobId);
      if (present?.listeners.delete(listener) === true && present.listeners.size === 0)
        this.#watched.delete(jobId);
    };
  }

  onWork(call: Listener): Unsubscribe {
    const listener = { call };
    this.#work.add(listener);
    return () => {
      this.#work.delete(listener);
    };
  }

  /** How many jobs are watched. */
  get size(): number {
    return this.#watched.size;
  }

  changed(jobId: string): void {
    const watched = this.#watched.get(jobId);
    if (watched !== undefined) tell(watched.listeners);
  }

  work(): void {
    tell(this.#work);
  }

  all(): void {
    for (const jobId of [...this.#watched.keys()]) this.changed(jobId);
    this.work();
  }

  clear(): void {
    this.#watched.clear();
    this.#work.clear();
  }

  /** Looks at all that is watched; a request during a look makes one more. */
  async look(): Promise<void> {
    this.#lookAgain = true;
    if (this.#looking) return;
    this.#looking = true;
    try {
      while (this.#lookAgain) {
        this.#lookAgain = false;
        await this.#lookOnce();
      }
    } finally {
      this.#looking = false;
    }
  }

  async #lookOnce(): Promise<void> {
    const jobIds = [...this.#watched.keys()];
    for (let at = 0; at < jobIds.length; at += LOOK_CHUNK) {
      const chunk = jobIds.slice(at, at + LOOK_CHUNK);
      const looks = await this.#look(chunk);
      for (const [index, jobId] of chunk.entries()) {
        const watched = this.#watched.get(jobId);
        if (watched === undefined || watched.seen === looks[index]) continue;
        watched.seen = looks[index];
        tell(watched.listeners);
      }
    }
  }
}

/** Those that are there now; one that is removed meanwhile is not called. */
function tell(listeners: Set<{ readonly call: Listener }>): void {
  for (const listener of [...listeners]) {
    if (!listeners.has(listener)) continue;
    try {
      listener.call();
    } catch {
      // See above: a listener's fault is its own.
    }
  }
}
