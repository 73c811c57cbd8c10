/** The jobs of a run, drawn from its seed: what each is to do, and what may become of it. */
import type { SeededRandom } from "../../sim/seeded-random.js";
import type { Part } from "../tasks/performance.js";

export interface JobPlan {
  /** One job per key, however often it is submitted. */
  readonly key: string;
  readonly task: "note" | "grind";
  readonly part: Part;
  /** Not to start before so much time has passed since it was accepted. */
  readonly delayMs: number;
  readonly maxAttempts: number;
  /** Its submitter cancels it as soon as it is accepted. */
  readonly cancels: boolean;
}

/** As many as there may be: more than a run's faults will cost one job. */
const MANY_ATTEMPTS = 100;

const DELAY_MS = 1_500;

/**
 * Most jobs succeed and may be tried as often as it takes; some may run only once, some fail first,
 * some always, some are delayed, and some are cancelled.
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
  const plain: JobPlan = {
    key: `job ${String(n)}`,
    task,
    part: { n, ms, fails: 0 },
    delayMs: 0,
    maxAttempts: MANY_ATTEMPTS,
    cancels: false,
  };
  if (kind < 0.8) return plain;
  if (kind < 0.88) return { ...plain, maxAttempts: 1 };
  if (kind < 0.92) return { ...plain, part: { n, ms, fails: 1 } };
  if (kind < 0.96) return { ...plain, part: { n, ms, fails: 2 }, maxAttempts: 2 };
  if (kind < 0.98) return { ...plain, delayMs: DELAY_MS };
  return { ...plain, cancels: true };
}
