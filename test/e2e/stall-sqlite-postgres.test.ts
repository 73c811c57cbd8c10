/** F8: a handler that spins in the process itself holds up its event loop, and nobody takes its worker for lost. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { Process, scratch, Server } from "./server.js";
import { NEW_STORE } from "./stores.js";

const SPIN = resolve(import.meta.dirname, "tasks/spin-inline.ts");
/** A database server that has other work takes its time for a beat. */
const WORKER_TIMEOUT_S = { sqlite: 1, postgres: 3 } as const;

function limits(kind: keyof typeof NEW_STORE): readonly string[] {
  return ["--worker-timeout", `${String(WORKER_TIMEOUT_S[kind])}s`, "--max-workers", "1"];
}

async function workerOn(
  store: readonly string[],
  cwd: string,
  more: readonly string[] = [],
): Promise<Process> {
  const started = new Process(["worker", SPIN, ...store, ...more], { cwd });
  await started.says(/^jobtable worker worker-[0-9a-f]{8} ready$/m);
  return started;
}

async function serverOn(store: readonly string[], cwd: string): Promise<Server> {
  const args = ["serve", SPIN, "--port", "0", "--no-worker", ...store];
  const started = new Process(args, { cwd });
  const [, url = ""] = await started.says(/^jobtable listening on (http:\S+)$/m);
  return new Server(started, url);
}

test.each(["sqlite", "postgres"] as const)(
  "F8: an inline handler that spins four times as long as worker_timeout runs once, beside another worker: on %s",
  async (kind) => {
    const cwd = scratch();
    const store = ["--store", NEW_STORE[kind](), ...limits(kind)];
    const trail = join(cwd, "trail");
    const server = await serverOn(store, cwd);
    const workers = await Promise.all([workerOn(store, cwd), workerOn(store, cwd)]);
    const jobId = await server.submit(
      { ms: 4_000 * WORKER_TIMEOUT_S[kind], trail },
      { task: "spin-inline", max_attempts: 3, timeout_ms: 60_000 },
    );
    const ended = await server.ended(jobId);
    expect(ended).toMatchObject({ state: "done", attempt: 1 });
    const { json } = await server.call("GET", `/jobs/${jobId}/result`);
    const [spun, other] =
      workers[0].pid === (json["data"] as { pid: number }).pid ? workers : [...workers].reverse();
    await spun?.says(/"held_up_ms":\d{4,}.*"an inline handler held up the event loop/, "stderr");
    expect(readFileSync(trail, "utf8")).toBe(`${String(spun?.pid)}\n`);
    expect(other?.stderr).not.toContain("worker was lost");
    for (const worker of workers) {
      worker.kill("SIGTERM");
      expect((await worker.ended).code).toBe(0);
    }
  },
);

test("one that spins for ever is found by job_timeout, as any job that falls silent", async () => {
  const cwd = scratch();
  const store = ["--store", "sqlite:jobs.db", ...limits("sqlite")];
  const trail = join(cwd, "trail");
  const server = await serverOn(store, cwd);
  const spinning = await workerOn(store, cwd);
  const jobId = await server.submit({ ms: 1e9, trail }, { task: "spin-inline" });
  await server.until(jobId, "running");
  await workerOn(store, cwd, ["--job-timeout", "3s"]);
  const ended = await server.ended(jobId);
  expect(ended).toMatchObject({ state: "failed", attempt: 1 });
  expect(ended["error"]).toContain("Heartbeat timeout");
  spinning.kill("SIGKILL");
});
