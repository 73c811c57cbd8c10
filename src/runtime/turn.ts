/**
 * The end of the present turn of the event loop: what all sockets and threads have delivered in this
 * turn is seen by then, and everyone else has had their say before the next one begins.
 */

/** Calls `fire` once, at the end of this turn. It never keeps anything waiting: no time passes. */
export function atTurnEnd(fire: () => void): void {
  setImmediate(fire);
}

/** Lets everyone else have a turn. */
export function turnEnd(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
