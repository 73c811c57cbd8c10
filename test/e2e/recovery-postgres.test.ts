/** A database server that goes away for a while, under a serving process and a worker. */
import { expect, onTestFinished, test } from "vitest";
import { freePort, startPostgres } from "../postgres-server.js";
import { ACT, Process, scratch, serve, Server, worker } from "./server.js";

/** Longer than the first tries to reconnect and than a beat of this test's workers. */
const DOWN_MS = 4_000;

test.each(["fast", "immediate"] as const)(
  "a server that was stopped (%s): readiness tells, then waiters, jobs and workers go on by themselves",
  async (mode) => {
    const postgres = await startPostgres();
    onTestFinished(() => postgres.stop());
    const cwd = scratch();
    const args = ["--store", postgres.url];
    const server = await serve([...args, "--no-worker"], { cwd });
    const working = await worker([...args, "--max-workers", "2", "--worker-timeout", "60s"], {
      cwd,
    });
    const survivor = await started(server, { hold: true });
    // Open all the while; it has looked by the time that the next one is answered.
    const wait = server.call("GET", `/jobs/${survivor}/wait?timeout=120000`);
    const follower = new Process(["jobs", "show", survivor, "--follow", ...args], { cwd });
    await follower.says(/running/);
    const delayed = await server.submit({ say: "submitted before" }, { delay_ms: 500 });

    await postgres.halt(mode);
    await expect.poll(() => ready(server), { timeout: 20_000 }).toBe(503);
    expect((await server.call("POST", "/jobs", { hold: true })).status).toBe(503);
    const downUntilMs = performance.now() + DOWN_MS;
    await expect
      .poll(async () => [await ready(server), performance.now() > downUntilMs], {
        timeout: DOWN_MS + 20_000,
      })
      .toEqual([503, true]);
    await postgres.resume();

    await expect.poll(() => ready(server), { timeout: 30_000 }).toBe(200);
    const fresh = await server.submit({ say: "submitted after" });
    expect(await server.ended(fresh)).toMatchObject({ state: "done" });
    expect(await server.ended(delayed)).toMatchObject({ state: "done", attempt: 1 });
    expect((await server.call("DELETE", `/jobs/${survivor}`)).status).toBe(202);
    expect((await wait).json).toMatchObject({ state: "cancelled", attempt: 1 });
    expect(await follower.ended).toMatchObject({ code: 1 });
    expect(follower.stdout).toContain("cancelled");
    expect(working.stderr).not.toContain("uncaught");
  },
);

test("a server that comes late: listens, is alive and not ready until it is there, then serves", async () => {
  const postgres = await startPostgres();
  onTestFinished(() => postgres.stop());
  await postgres.halt("fast");
  const port = await freePort();
  const args = ["serve", ACT, "--store", postgres.url, "--port", String(port)];
  const process = new Process(args, { cwd: scratch() });
  const server = new Server(process, `http://127.0.0.1:${port}`);

  await process.says(/the ledger can't be reached yet/, "stderr");
  expect((await server.call("GET", "/healthz")).status).toBe(200);
  const reason = "the ledger has not been reached yet";
  expect(await server.call("GET", "/ready")).toMatchObject({ status: 503, json: { reason } });
  const early = await server.call("POST", "/jobs", { say: "early" });
  expect(early).toMatchObject({ status: 503, json: { code: 65, error: "service not ready" } });
  expect(early.headers.get("retry-after")).toBe("5");
  expect(process.stdout).toBe("");

  await postgres.resume();
  await process.says(/^jobtable listening on /m);
  expect(await ready(server)).toBe(200);
  const jobId = await server.submit({ say: "now" });
  expect(await server.ended(jobId)).toMatchObject({ state: "done" });
  process.kill("SIGTERM");
  expect(await process.ended).toEqual({ code: 0, signal: null });
});

async function started(server: Server, input: unknown): Promise<string> {
  const jobId = await server.submit(input);
  expect(await server.until(jobId, "running")).toMatchObject({ state: "running" });
  return jobId;
}

async function ready(server: Server): Promise<number> {
  return (await server.call("GET", "/ready")).status;
}
