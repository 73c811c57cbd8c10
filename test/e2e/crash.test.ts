/** kill -9: what was answered with 202 is there afterwards, and is finished. */
import { expect, test } from "vitest";
import { run, scratch, serve, worker } from "./server.js";

const SHARED = ["--store", "sqlite:jobs.db", "--max-workers", "2"];
const ARGS = [...SHARED, "--async-max-queue", "1000"];

test("a server that is killed in the middle of a hundred jobs loses none", async () => {
  const cwd = scratch();
  const first = await serve(ARGS, { cwd });
  const answered: string[] = [];
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      try {
        answered.push(await first.submit({ say: String(index) }, { max_attempts: 2 }));
      } catch {
        return; // Not answered: the server was gone.
      }
      if (answered.length === 60) first.process.kill("SIGKILL");
    }),
  );
  expect(await first.process.ended).toEqual({ code: null, signal: "SIGKILL" });
  expect(answered.length).toBeGreaterThanOrEqual(60);
  const second = await serve(ARGS, { cwd });
  const ends = await Promise.all(answered.map((jobId) => second.ended(jobId)));
  expect(ends.map(({ state }) => state)).toEqual(answered.map(() => "done"));
});

test("the jobs of a killed worker end at once when another one starts", async () => {
  const cwd = scratch();
  const server = await serve([...ARGS, "--no-worker"], { cwd });
  const killed = await worker(SHARED, { cwd });
  const once = await server.submit({ hold: true });
  const again = await server.submit({ hold: true }, { max_attempts: 2 });
  await Promise.all([server.until(once, "running"), server.until(again, "running")]);
  killed.kill("SIGKILL");
  await killed.ended;
  // Both timeouts are far from over: the new worker knows that the old process is gone.
  await worker(SHARED, { cwd });
  expect(await server.ended(once)).toMatchObject({
    state: "failed",
    error: expect.stringContaining("Heartbeat timeout") as string,
  });
  const attempt = async (): Promise<unknown> =>
    (await server.call("GET", `/jobs/${again}`)).json["attempt"];
  while ((await attempt()) === 1) await server.call("GET", `/jobs/${again}/wait?timeout=1000`);
  expect(await server.until(again, "running")).toMatchObject({ state: "running", attempt: 2 });
  await server.call("DELETE", `/jobs/${again}`);
  expect(await server.ended(again)).toMatchObject({ state: "cancelled" });
});

test("the records of a killed server can be read while it is down", async () => {
  const cwd = scratch();
  const server = await serve(ARGS, { cwd });
  const done = await server.submit({ say: "kept" });
  await server.ended(done);
  server.process.kill("SIGKILL");
  await server.process.ended;
  const result = await run(["jobs", "result", done, "--json", "--store", "sqlite:jobs.db"], {
    cwd,
  });
  expect(JSON.parse(result.stdout)).toMatchObject({ code: 0, data: { said: "kept" } });
});
