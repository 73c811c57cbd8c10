/** Computes in the process itself, and lets nothing else there have a turn; leaves a line in a file each time it runs. */
import { appendFileSync } from "node:fs";
import { task } from "jobtable";

export interface Spin {
  readonly ms: number;
  readonly trail: string;
}

export default task<Spin, { pid: number }>({
  name: "spin-inline",
  isolation: "inline",
  run({ ms, trail }) {
    appendFileSync(trail, `${String(process.pid)}\n`);
    const untilMs = performance.now() + ms;
    while (performance.now() < untilMs);
    return { pid: process.pid };
  },
});
