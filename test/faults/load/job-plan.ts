/** The jobs of a run, drawn from its seed: what each is to do, and what may become of it. */
import type { SeededRandom } from "../../sim/seeded-random.js";
import type { Part } from "../tasks/performance.js";

export interface JobPlan {
  readonly task: "note" | "grind";
  readonly part: Part;
  readonly maxAttempts: number;
  /** Its submitter cancels it as soon as it is accepted. */
  readonly cancels: boolean;
}

/** As many as there may be: more than a run's faults will cost one job. */
const MANY_ATTEMPTS = 100;

/**
 * Most jobs succeed and may be tried as often as it takes; some may run only once, some fail first,
 * some always, and some are cancelled.
 * @param runMs shortest and longest run.
 */
export function planJob(
  n: number,
  random: SeededRandom,
  [low, high]: readonly [number, number],
): JobPlan {
  const kind = random.unit();
  const ms = random.between(low, high);
  const task = random.oneIn(10) ? "grind" : "note";
  const plan = (fails: number, maxAttempts: number, cancels = false): JobPlan => ({
    task,
    part: { n, ms, fails },
    maxAttempts,
    cancels,
  });
  if (kind < 0.82) return plan(0, MANY_ATTEMPTS);
  if (kind < 0.9) return plan(0, 1);
  if (kind < 0.94) return plan(1, MANY_ATTEMPTS);
  if (kind < 0.98) return plan(2, 2);
  return plan(0, MANY_ATTEMPTS, true);
}
