/** The commands against a server: what a store answers, from any machine. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Process, run, scratch, serve, type Output } from "./server.js";

const ID = /^job_[0-9A-HJKMNP-TV-Z]{26}$/;

test("submit, look, wait, result, cancel and retry", async () => {
  const server = await serve(["--max-workers", "1"], { cwd: scratch() });
  const cwd = scratch();
  const ask = (...args: string[]): Promise<Output> =>
    run(args, { cwd, env: { JOBTABLE_SERVER: server.url } });

  const done = await ask(
    "submit",
    "act",
    "-i",
    '{"say": "x"}',
    "--request-id",
    "r",
    "--wait",
    "--json",
  );
  expect(done).toMatchObject({ code: 0, stderr: "" });
  const { job_id: id, ...rest } = JSON.parse(done.stdout) as Record<string, unknown>;
  expect(id).toMatch(ID);
  expect(rest).toMatchObject({ state: "done", req_id: "r", data: { said: "x" } });
  const result = await ask("jobs", "result", String(id), "--json");
  expect(JSON.parse(result.stdout)).toEqual({
    req_id: "r",
    code: 0,
    msg: "success",
    data: { said: "x" },
  });
  expect((await ask("jobs", "result", String(id))).stdout).toBe('{\n  "said": "x"\n}\n');

  const failed = await ask("submit", "act", "-i", '{"fail": "no"}', "--wait");
  expect(failed).toMatchObject({ code: 1, stdout: "" });
  expect(failed.stderr).toMatch(/^jobtable: job job_\w{26} failed: Error: no\n$/);

  const held = (await ask("submit", "act", "-i", '{"hold": true}')).stdout.trim();
  await server.until(held, "running");
  const waiting = (await ask("submit", "act", "--priority", "3")).stdout.trim();
  expect((await ask("jobs", "wait", waiting, "--timeout", "10ms")).code).toBe(1);
  expect(await ask("jobs", "cancel", waiting)).toMatchObject({
    code: 0,
    stdout: `${waiting} cancelled\n`,
  });
  const again = (await ask("jobs", "retry", waiting, "--json")).stdout;
  expect(JSON.parse(again)).toMatchObject({ state: "pending", priority: 3 });
  expect(await ask("jobs", "retry", held)).toMatchObject({
    code: 1,
    stderr: "jobtable: job not finished (state: running)\n",
  });
  expect(JSON.parse((await ask("jobs", "cancel", held, "--json")).stdout)).toEqual({
    job_id: held,
    state: "running",
  });
  await server.ended(held);

  const list = await ask("jobs", "list", "--limit", "2", "--json");
  const { jobs, next_cursor: cursor } = JSON.parse(list.stdout) as {
    jobs: unknown[];
    next_cursor: string;
  };
  expect(jobs).toHaveLength(2);
  expect(cursor).toMatch(ID);
  expect((await ask("jobs", "list", "--cursor", cursor, "--state", "done")).stdout).toContain(
    String(id),
  );
  // Nothing was opened here.
  expect(existsSync(join(cwd, ".jobtable"))).toBe(false);
});

test("a retry on a store runs what has ended as a new job", async () => {
  const cwd = scratch();
  const server = await serve([], { cwd });
  const failed = await server.submit({ fail: "no" }, { max_attempts: 2, priority: 4 });
  await server.ended(failed);
  const retry = ["jobs", "retry", failed, "--idempotency-key", "once more"];
  const { code, stdout } = await run(retry, { cwd });
  expect(code).toBe(0);
  // Sent again, over HTTP this time, it is answered with the job that it made.
  expect((await run([...retry, "--server", server.url], { cwd })).stdout).toBe(stdout);
  expect(stdout.trim()).toMatch(ID);
  expect(stdout.trim()).not.toBe(failed);
  expect(await server.ended(stdout.trim())).toMatchObject({
    state: "failed",
    attempt: 2,
    priority: 4,
  });
});

test("what went wrong with each attempt is shown, whichever way", async () => {
  const cwd = scratch();
  const server = await serve([], { cwd });
  const failed = await server.submit({ fail: "out of paper" }, { max_attempts: 2 });
  await server.ended(failed);
  for (const way of [[], ["--server", server.url]]) {
    const { stdout } = await run(["jobs", "show", failed, ...way], { cwd });
    expect(stdout).toMatch(/\nattempt: +2 of 2\nworker: +worker-\w{8}\n/);
    expect(stdout).toMatch(/\nattempt 1: +\S+Z worker-\w{8}: Error: out of paper\n/);
    expect(stdout).toMatch(/\nerror: +Error: out of paper\n$/);
  }
});

test("what is refused, and how it ends", async () => {
  const cwd = scratch();
  const token = { JOBTABLE_AUTH_TOKEN: "s3cret" };
  const server = await serve(["--async-max-queue", "0"], { cwd, env: token });
  const to = ["--server", server.url];
  const refused = async (code: number, message: RegExp, ...args: string[]): Promise<void> => {
    const ended = await run(args, { cwd });
    expect(ended.stderr).toMatch(message);
    expect(ended).toMatchObject({ code, stdout: "" });
  };
  await refused(2, /asks for a token.*--token or JOBTABLE_AUTH_TOKEN\n$/, "jobs", "list", ...to);
  await refused(2, /asks for a token/, "jobs", "list", ...to, "--token", "wrong");
  to.push("--token", "s3cret");
  await refused(1, /^jobtable: async queue full \(max 0\)\n$/, "submit", "act", ...to);
  await refused(2, /^jobtable: unknown task: none; known: act\n$/, "submit", "none", ...to);
  await refused(2, /--priority|priority: /, "submit", "act", "--priority", "high", ...to);
  await refused(2, /^jobtable: --task-file: /, "submit", "act", "--task-file", "x.ts", ...to);
  await refused(2, /^jobtable: --server and --store: /, "jobs", "list", "--store", "memory", ...to);
  const unknown = "job_00000000000000000000000000";
  await refused(1, /^jobtable: job not found: job_0+\n$/, "jobs", "show", unknown, ...to);
  await refused(
    2,
    /^jobtable: setting server \(--server\): "x" is not http:/,
    "jobs",
    "list",
    "--server",
    "x",
  );
  server.process.kill("SIGTERM");
  await server.process.ended;
  await refused(
    3,
    /^jobtable: can't reach http:.*: nothing listens there\n$/,
    "jobs",
    "list",
    ...to,
  );
});

test("who follows a job may leave it, and a reader may leave who lists", async () => {
  const cwd = scratch();
  const server = await serve([], { cwd });
  const held = await server.submit({ hold: true });
  await server.until(held, "running");
  const follower = new Process(
    ["jobs", "show", held, "--follow", "--json", "--server", server.url],
    {
      cwd,
    },
  );
  const [line] = await follower.says(/^\{.*\}\n/);
  expect(JSON.parse(line)).toMatchObject({ job_id: held, state: "running" });
  follower.kill("SIGINT");
  expect(await follower.ended).toMatchObject({ signal: "SIGINT" });
  expect((await server.call("GET", `/jobs/${held}`)).json["state"]).toBe("running");

  const reader = new Process(["config"], { cwd });
  reader.deaf();
  expect(await reader.ended).toMatchObject({ code: 0 });
  expect(reader.stderr).toBe("");
});
