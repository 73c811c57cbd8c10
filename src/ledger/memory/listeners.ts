/**
 * Listeners, called at once when something happened. What one throws is dropped: it must break
 * neither the ledger, whose change has been made, nor the listeners after it.
 */
import type { Unsubscribe } from "../ledger.js";

type Listener = () => void;

export class Listeners {
  /** By key; a key without listeners is not in the map. */
  readonly #byKey = new Map<string, Set<{ readonly call: Listener }>>();

  add(key: string, call: Listener): Unsubscribe {
    const listener = { call };
    let listeners = this.#byKey.get(key);
    if (listeners === undefined) this.#byKey.set(key, (listeners = new Set()));
    listeners.add(listener);
    return () => {
      const present = this.#byKey.get(key);
      if (present?.delete(listener) === true && present.size === 0) this.#byKey.delete(key);
    };
  }

  /** Those that are there now; one that a listener adds or removes meanwhile is not called. */
  notify(key: string): void {
    const listeners = this.#byKey.get(key);
    if (listeners === undefined) return;
    for (const listener of [...listeners]) {
      if (!listeners.has(listener)) continue;
      try {
        listener.call();
      } catch {
        // See above: a listener's fault is its own.
      }
    }
  }

  clear(): void {
    this.#byKey.clear();
  }
}
