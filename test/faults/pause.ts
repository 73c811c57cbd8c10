/** Faults have their rhythm: this is where a run waits for time alone. */
import { systemClock } from "../../src/runtime/clock.js";

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.timer(ms, resolve);
  });
}
