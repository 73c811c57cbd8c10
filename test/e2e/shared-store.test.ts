/** Several processes on one SQLite file: each sees what the others do, and none loses what another accepted. */
import { expect, test } from "vitest";
import { run, scratch, serve, worker } from "./server.js";

const STORE = ["--store", "sqlite:jobs.db"];

test("one process takes jobs, another runs them", async () => {
  const cwd = scratch();
  const server = await serve([...STORE, "--no-worker"], { cwd });
  const early = await server.submit({ say: "before there is a worker" });
  expect((await server.call("GET", `/jobs/${early}`)).json["state"]).toBe("pending");
  const other = await worker(STORE, { cwd });
  expect(await server.ended(early)).toMatchObject({ state: "done" });
  const late = await server.submit({ say: "across" });
  expect(await server.ended(late)).toMatchObject({ state: "done" });
  expect((await server.call("GET", `/jobs/${late}/result`)).json["data"]).toEqual({
    said: "across",
  });
  const failed = await server.submit({ fail: "out of paper" });
  expect(await server.ended(failed)).toMatchObject({
    state: "failed",
    error: "Error: out of paper",
  });
  other.kill("SIGTERM");
  expect((await other.ended).code).toBe(0);
});

test("a third process submits, waits and cancels", async () => {
  const cwd = scratch();
  const server = await serve([...STORE, "--max-workers", "1"], { cwd });
  const done = await run(
    ["submit", "act", "--input", '{"say": "from the shell"}', "--wait", ...STORE],
    { cwd },
  );
  expect(done).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(done.stdout)).toEqual({ said: "from the shell" });

  const held = await server.submit({ hold: true });
  await server.until(held, "running");
  const queued = await run(["submit", "act", ...STORE], { cwd });
  const waiting = queued.stdout.trim();
  const first = await run(["jobs", "cancel", waiting, "--json", ...STORE], { cwd });
  expect(JSON.parse(first.stdout)).toEqual({ job_id: waiting, state: "cancelled" });
  const second = await run(["jobs", "cancel", held, "--json", ...STORE], { cwd });
  expect(JSON.parse(second.stdout)).toEqual({ job_id: held, state: "running" });
  expect(await server.ended(held)).toMatchObject({ state: "cancelled" });
});

test("two servers on one file share jobs, ends and the bound", async () => {
  const cwd = scratch();
  const args = [...STORE, "--max-workers", "1", "--async-max-queue", "4"];
  const [one, two] = await Promise.all([serve(args, { cwd }), serve(args, { cwd })]);
  const replies = await Promise.all(
    Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? one : two).call("POST", "/jobs", { hold: true }),
    ),
  );
  const accepted = replies
    .filter(({ status }) => status === 202)
    .map(({ json }) => String(json["job_id"]));
  expect(accepted).toHaveLength(4);
  expect(replies.filter(({ status }) => status === 429)).toHaveLength(16);
  // Whichever server runs a job, the other one can cancel it and hears of its end.
  for (const [index, jobId] of accepted.entries()) {
    const [canceller, waiter] = index % 2 === 0 ? [one, two] : [two, one];
    const end = waiter.ended(jobId);
    await canceller.call("DELETE", `/jobs/${jobId}`);
    expect(await end).toMatchObject({ state: "cancelled" });
  }
  const after = await one.submit({ say: "room again" });
  expect(await two.ended(after)).toMatchObject({ state: "done" });
});
