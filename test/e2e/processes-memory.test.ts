/** Large bodies: what a serving process needs for many at once. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { scratch, serve, type Process } from "./server.js";

const JOBS = 50;
const BODY_BYTES = 10_000_000;
/**
 * Of the bodies' bytes, all of them together. Each is there as it was parsed, as it is recorded, and
 * on its way to the database thread; the rest is what was not collected yet.
 */
const MOST_COPIES = 4;
const isLinux = process.platform === "linux";

test.runIf(isLinux)(
  "fifty jobs of 10 MB at once: all are recorded, in bounded memory",
  { timeout: 600_000 },
  async () => {
    const server = await serve(["--no-worker", "--async-max-queue", String(JOBS)], {
      cwd: scratch(),
    });
    const before = peakBytes(server.process);
    // One copy here for all.
    const body = JSON.stringify({ task: "act", input: { say: "x".repeat(BODY_BYTES) } });
    const headers = { "content-type": "application/json" };
    const statuses = await Promise.all(
      Array.from({ length: JOBS }, async () => {
        const reply = await fetch(`${server.url}/jobs`, { method: "POST", body, headers });
        await reply.arrayBuffer();
        return reply.status;
      }),
    );
    expect(statuses).toEqual(statuses.map(() => 202));
    const grown = peakBytes(server.process) - before;
    expect(grown / (JOBS * BODY_BYTES)).toBeLessThan(MOST_COPIES);
  },
);

/** The most that the process has had in memory at any time. */
function peakBytes({ pid }: Process): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
}
