/** Processes that end, and processes whose handlers give them no peace. */
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { describe, expect, test } from "vitest";
import { run, scratch, serve, worker, type Server } from "./server.js";
import { NEW_STORE } from "./stores.js";

const INLINE = resolve(import.meta.dirname, "tasks/act-inline.ts");
/** What each step after the limit may take (killing, recording, signing off), and a busy machine. */
const STEPS_MS = 10_000;

interface Running {
  readonly task: "act" | "act-inline";
  readonly input: Readonly<Record<string, true>>;
  readonly maxAttempts: number;
}

/** Each runs once with an attempt left and once without. */
function each(...kinds: readonly Pick<Running, "task" | "input">[]): Running[] {
  return kinds.flatMap((kind) => [1, 2].map((maxAttempts) => ({ ...kind, maxAttempts })));
}

const LISTENING = each(
  { task: "act", input: { hold: true } },
  { task: "act-inline", input: { hold: true } },
);
const DEAF = each(
  { task: "act", input: { deaf: true } },
  { task: "act", input: { spin: true } },
  { task: "act-inline", input: { deaf: true } },
);

describe.each(Object.entries(NEW_STORE))("%s", (_, newStore) => {
  test.each([
    { name: "nothing to do", jobs: [], limitMs: 60_000, withinMs: STEPS_MS },
    { name: "handlers that listen", jobs: LISTENING, limitMs: 60_000, withinMs: STEPS_MS },
    { name: "deaf handlers", jobs: DEAF, limitMs: 1_000, withinMs: 1_000 + STEPS_MS },
  ])("SIGTERM with $name: every row is terminal or queued", async ({ jobs, limitMs, withinMs }) => {
    const cwd = scratch();
    const store = ["--store", newStore()];
    const server = await serve([INLINE, ...store, "--no-worker"], { cwd });
    const limit = ["--shutdown-timeout", `${String(limitMs)}ms`, "--cancel-grace", "1h"];
    const slots = ["--max-workers", String(Math.max(1, jobs.length))];
    const working = await worker([INLINE, ...store, ...limit, ...slots], { cwd });
    const running = await Promise.all(jobs.map((job) => started(server, job)));
    const waiting = jobs.length === 0 ? [] : [await server.submit({})];
    const fromMs = performance.now();
    working.kill("SIGTERM");
    expect(await working.ended).toEqual({ code: 0, signal: null });
    expect(performance.now() - fromMs).toBeLessThan(withinMs);
    const ends = await Promise.all(
      [...running, ...waiting].map(async (id) => (await server.call("GET", `/jobs/${id}`)).json),
    );
    expect(ends.map(({ state, attempt }) => `${String(state)} ${String(attempt)}`)).toEqual([
      ...jobs.map(({ maxAttempts }) => (maxAttempts === 1 ? "cancelled 1" : "pending 1")),
      ...waiting.map(() => "pending 0"),
    ]);
    const { stdout } = await run(["diagnostics", "--json", ...store], { cwd });
    expect(JSON.parse(stdout)).toMatchObject({ depth: { running: 0 }, workers: [] });
  });

  test("a handler that spins keeps neither its heartbeats nor its process's answers", async () => {
    const cwd = scratch();
    const store = newStore();
    const args = ["--store", store, "--worker-timeout", "1s", "--max-workers", "1"];
    const server = await serve(args, { cwd });
    const jobId = await server.submit({ spin: true });
    await server.until(jobId, "running");
    // Another one looks for lost workers three times a second.
    const other = await worker(args, { cwd });
    const age = async (): Promise<unknown> =>
      (await server.call("GET", `/jobs/${jobId}`)).json["elapsed_ms"];
    const { elapsed_ms: shownMs } = (await server.call("GET", `/jobs/${jobId}`)).json;
    await expect
      .poll(age, { timeout: 30_000, interval: 100 })
      .toBeGreaterThan(Number(shownMs) + 3_000);
    const fromMs = performance.now();
    expect((await server.call("GET", "/healthz")).status).toBe(200);
    expect(performance.now() - fromMs).toBeLessThan(1_000);
    expect((await server.call("GET", `/jobs/${jobId}`)).json).toMatchObject({
      state: "running",
      attempt: 1,
    });
    expect(other.stderr).not.toContain("lost");
  });
});

async function started(server: Server, { task, input, maxAttempts }: Running): Promise<string> {
  const jobId = await server.submit(input, { task, max_attempts: maxAttempts });
  expect(await server.until(jobId, "running")).toMatchObject({ state: "running" });
  return jobId;
}
