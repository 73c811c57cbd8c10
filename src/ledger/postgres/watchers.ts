/**
 * Who watches which job, and who looks for work. Changes are told as they are heard of. Where hearing
 * is not to be had (see listener.ts), all watched jobs are looked at now and then, some hundred at a
 * time, and those that differ from the last look are told. What a listener throws is dropped: the
 * change has been made, and the others must hear of it.
 */
import type { Unsubscribe } from "../ledger.js";

/** Jobs in one look: some ms at the server. */
const LOOK_CHUNK = 1_000;
/** What a look says of a job that is not there. */
const ABSENT = "";

interface Listener {
  readonly call: () => void;
}

interface Watched {
  readonly listeners: Set<Listener>;
  /** As the last look found it; undefined before the first one, which tells in any case. */
  seen: string | undefined;
}

export class Watchers {
  readonly #watched = new Map<string, Watched>();
  readonly #work = new Set<Listener>();

  get size(): number {
    return this.#watched.size;
  }

  watch(jobId: string, call: () => void): Unsubscribe {
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

  onWork(call: () => void): Unsubscribe {
    const listener = { call };
    this.#work.add(listener);
    return () => {
      this.#work.delete(listener);
    };
  }

  changed(jobIds: readonly string[]): void {
    if (this.#watched.size === 0) return;
    for (const jobId of jobIds) {
      const watched = this.#watched.get(jobId);
      if (watched !== undefined) tell(watched.listeners);
    }
  }

  work(): void {
    tell(this.#work);
  }

  /** After a gap in which anything may have happened. */
  all(): void {
    this.changed([...this.#watched.keys()]);
    this.work();
  }

  clear(): void {
    this.#watched.clear();
    this.#work.clear();
  }

  /** @param lookAt answers, by id, a text that differs when what can be seen of the job differs. */
  async look(
    lookAt: (jobIds: readonly string[]) => Promise<ReadonlyMap<string, string>>,
  ): Promise<void> {
    const jobIds = [...this.#watched.keys()];
    for (let at = 0; at < jobIds.length; at += LOOK_CHUNK) {
      const chunk = jobIds.slice(at, at + LOOK_CHUNK);
      const looks = await lookAt(chunk);
      for (const jobId of chunk) {
        const watched = this.#watched.get(jobId);
        const look = looks.get(jobId) ?? ABSENT;
        if (watched === undefined || watched.seen === look) continue;
        watched.seen = look;
        tell(watched.listeners);
      }
    }
  }
}

/** Those that are there now; one that is removed meanwhile is not called. */
function tell(listeners: Set<Listener>): void {
  for (const listener of [...listeners]) {
    if (!listeners.has(listener)) continue;
    try {
      listener.call();
    } catch {
      // See above: a listener's fault is its own.
    }
  }
}
