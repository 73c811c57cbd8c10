/** Keeps the process running while there is nothing else that would: timers of a `Clock` don't. */

/** As long as a timer can be; it only has to exist. */
const FOREVER_MS = 2 ** 31 - 1;

/** @returns lets the process end again. Idempotent. */
export function keepAlive(): () => void {
  const handle = setInterval(() => undefined, FOREVER_MS);
  return () => {
    clearInterval(handle);
  };
}
