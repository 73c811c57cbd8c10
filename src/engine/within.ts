/** A promise with a deadline. */
import type { Clock } from "../runtime/clock.js";

/** @returns what `work` resolves to, or `late` once `limitMs` has passed; `work` goes on then. */
export function within<T, L>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
  late: () => L,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const cancel = clock.timer(limitMs, () => {
      resolve(late());
    });
    work.then(resolve, reject).finally(cancel);
  });
}
