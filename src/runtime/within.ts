/** A promise with a deadline. */
import type { Clock } from "./clock.js";

/**
 * @returns what `work` comes to, or what `late` gives once `limitMs` has passed (to fail then, a
 *   rejected promise). `work` goes on in that case, and what becomes of it is dropped.
 */
export function within<T, L>(
  clock: Clock,
  limitMs: number,
  work: Promise<T>,
  late: () => L | Promise<L>,
): Promise<T | L> {
  return new Promise((resolve, reject) => {
    const cancel = clock.timer(limitMs, () => {
      resolve(late());
    });
    work.then(resolve, reject).finally(cancel);
  });
}
