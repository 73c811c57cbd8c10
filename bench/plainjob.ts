/** plainjob 0.0.14 at its own settings (WAL, synchronous=NORMAL), as its documentation shows it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";

/** What is used of plainjob. It is installed with the benchmark only, so the types stand here. */
interface Queue {
  add(type: string, data: unknown): unknown;
  addMany(type: string, data: readonly unknown[]): unknown;
  close(): void;
}
interface Plainjob {
  better(database: Database.Database): unknown;
  defineQueue(options: { connection: unknown; logger: unknown }): Queue;
  defineWorker(
    type: string,
    run: () => Promise<void>,
    options: { queue: Queue; logger: unknown; onCompleted: () => void },
  ): { start(): unknown; stop(): Promise<void> };
}

const PACKAGE = "plainjob";
const plainjob = (await import(PACKAGE)) as Plainjob;

const logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: console.error,
};

function payload(index: number): { n: number; email: string; template: string } {
  return { n: index, email: `user${String(index)}@example.com`, template: "welcome" };
}

async function withQueue(body: (queue: Queue) => Promise<number> | number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "plainjob-bench-"));
  const queue = plainjob.defineQueue({
    connection: plainjob.better(new Database(join(folder, "jobs.db"))),
    logger,
  });
  try {
    return await body(queue);
  } finally {
    queue.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

export function plainjobSubmitRate(jobs: number): Promise<number> {
  return withQueue((queue) => {
    const began = performance.now();
    for (let index = 0; index < jobs; index += 1) queue.add("noop", payload(index));
    return (jobs / (performance.now() - began)) * 1_000;
  });
}

export function plainjobDrainRate(jobs: number): Promise<number> {
  return withQueue(async (queue) => {
    for (let start = 0; start < jobs; start += 1_000)
      queue.addMany(
        "noop",
        Array.from({ length: Math.min(1_000, jobs - start) }, (_, offset) =>
          payload(start + offset),
        ),
      );
    let done = 0;
    const began = performance.now();
    return await new Promise<number>((resolve) => {
      const worker = plainjob.defineWorker("noop", () => Promise.resolve(), {
        queue,
        logger,
        onCompleted: () => {
          done += 1;
          if (done < jobs) return;
          const rate = (jobs / (performance.now() - began)) * 1_000;
          void worker.stop().then(() => {
            resolve(rate);
          });
        },
      });
      worker.start();
    });
  });
}
