/** The commands that ask and end: what they print, as text and as JSON, and how they exit. */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import Database from "better-sqlite3";
import { describe, expect, test } from "vitest";
import { run, scratch, serve } from "./server.js";

const GREET = resolve(import.meta.dirname, "tasks/greet.ts");
const ID = /^job_[0-9A-HJKMNP-TV-Z]{26}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("submit", () => {
  test("prints the id of a job that nobody runs yet, and says so", async () => {
    const cwd = scratch();
    const { code, stdout, stderr } = await run(["submit", "act"], { cwd });
    expect(code).toBe(0);
    expect(stdout.trim()).toMatch(ID);
    expect(stderr).toBe("jobtable: no worker runs task act now; the job waits until one does\n");
    const shown = await run(["jobs", "show", stdout.trim(), "--json"], { cwd });
    expect(JSON.parse(shown.stdout)).toMatchObject({ state: "pending", task: "act" });
  });

  test("takes its input from a file and from standard input", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "input.json"), '{"name": "Ada"}');
    const fromFile = await run(["submit", "greet", "--input", "@input.json", "--json"], { cwd });
    expect(JSON.parse(fromFile.stdout)).toMatchObject({ state: "pending", max_attempts: 1 });
    const args = ["submit", "greet", "-i", "-", "--max-attempts", "3", "--priority", "5", "--json"];
    const fromInput = await run(args, { cwd, input: '{"name": "Ada"}' });
    expect(JSON.parse(fromInput.stdout)).toMatchObject({ max_attempts: 3, priority: 5 });
  });

  test("a key is one job; a time is an earliest start", async () => {
    const cwd = scratch();
    const submit = (...args: string[]): ReturnType<typeof run> =>
      run(["submit", "act", "--idempotency-key", "k", ...args], { cwd });
    const later = new Date(Date.now() + 3_600_000).toISOString();
    const first = await submit("--run-at", later);
    expect(first.stdout.trim()).toMatch(ID);
    expect(await submit()).toMatchObject({ code: 0, stdout: first.stdout, stderr: "" });
    const other = await submit("-i", '{"say": "y"}');
    expect(other).toMatchObject({ code: 2, stdout: "" });
    expect(other.stderr).toContain(first.stdout.trim());
    const { stdout } = await run(["jobs", "show", first.stdout.trim()], { cwd });
    expect(stdout).toMatch(/\nkey: +k\n/);
  });

  test("with a task file, checks the input before it is recorded", async () => {
    const cwd = scratch();
    const args = ["submit", "greet", "--task-file", GREET];
    const { code, stderr } = await run([...args, "--input", '{"name": ""}'], { cwd });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^jobtable: model input empty: name: .+\n$/);
    expect((await run(["jobs", "list", "--json"], { cwd })).stdout).toBe('{"jobs":[]}\n');
    expect((await run([...args, "--input", '{"name": "Ada"}'], { cwd })).code).toBe(0);
  });

  test.each([
    [["--input", "{"], /^jobtable: --input: the text is not JSON \(.+\)\n$/],
    [["--input", "@none.json"], /^jobtable: --input: none\.json can't be read \(.+\)\n$/],
    [["--delay", "soon"], /^jobtable: --delay: "soon" is no duration/],
    [
      ["--run-at", "tomorrow"],
      /^jobtable: --run-at: "tomorrow" is no time; expected one with a zone/,
    ],
    [["--run-at", "2030-01-01T00:00:00Z", "--delay", "5m"], /^jobtable: --delay and --run-at: /],
    [["--priority", "high"], /^jobtable: invalid input: priority: must be an integer/],
    [["--store", "memory"], /^jobtable: setting store: memory lives inside one serving process/],
  ])("refuses %j with code 2", async (args, message) => {
    const { code, stdout, stderr } = await run(["submit", "act", ...args], { cwd: scratch() });
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });

  test("a full queue: code 1", async () => {
    const { code, stderr } = await run(["submit", "act", "--async-max-queue", "0"], {
      cwd: scratch(),
    });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "jobtable: async queue full (max 0)\n" });
  });

  test("--wait: the result and 0, or the reason and 1", async () => {
    const cwd = scratch();
    await serve([], { cwd });
    const done = await run(["submit", "act", "-i", '{"say": "x"}', "--wait", "--json"], { cwd });
    expect(done.code).toBe(0);
    expect(JSON.parse(done.stdout)).toMatchObject({ state: "done", data: { said: "x" } });
    const failed = await run(["submit", "act", "-i", '{"fail": "no"}', "--wait"], { cwd });
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    expect(failed.stderr).toMatch(/^jobtable: job job_\w{26} failed: Error: no\n$/);
  });
});

describe("jobs", () => {
  test("list, show, wait, result", async () => {
    const cwd = scratch();
    const server = await serve([], { cwd });
    const done = await server.submit({ say: "x" }, { req_id: "r-1" });
    const failed = await server.submit({ fail: "no" });
    await Promise.all([server.ended(done), server.ended(failed)]);
    const jobs = (...args: string[]): ReturnType<typeof run> => run(["jobs", ...args], { cwd });

    const page = await jobs("list", "--limit", "1", "--json");
    const { jobs: newest, next_cursor: cursor } = JSON.parse(page.stdout) as {
      jobs: unknown[];
      next_cursor: string;
    };
    expect(newest).toMatchObject([{ job_id: failed, state: "failed", error: "Error: no" }]);
    const rest = await jobs("list", "--cursor", cursor, "--json");
    expect(JSON.parse(rest.stdout)).toMatchObject({ jobs: [{ job_id: done, state: "done" }] });
    const filtered = await jobs("list", "--state", "done,running");
    expect(filtered.stdout.split("\n")[0]).toMatch(/^JOB +STATE +TASK +CREATED +ELAPSED +ERROR$/);
    expect(filtered.stdout).toContain(done);
    expect(filtered.stdout).not.toContain(failed);

    const shown = await jobs("show", done);
    expect(shown.code).toBe(0);
    expect(shown.stdout).toMatch(/^job: +job_\w{26}\nstate: +done\ntask: +act\n/);
    expect((await jobs("wait", done)).code).toBe(0);
    expect((await jobs("wait", failed, "--json")).code).toBe(1);

    const result = await jobs("result", done, "--json");
    expect(JSON.parse(result.stdout)).toEqual({
      req_id: "r-1",
      code: 0,
      msg: "success",
      data: { said: "x" },
    });
    expect(await jobs("result", failed)).toMatchObject({ code: 1, stdout: "" });
    expect(await jobs("cancel", done)).toMatchObject({
      code: 1,
      stderr: "jobtable: job already finished (state: done)\n",
    });
  });

  test("what is unknown: code 1; what is no id: code 2; and a store that is not there: code 3", async () => {
    const cwd = scratch();
    const unknown = "job_00000000000000000000000000";
    const ask = async (code: number, stderr: string | RegExp, ...args: string[]) => {
      const ended = await run(args, { cwd });
      expect(ended).toMatchObject({ code, stdout: "" });
      expect(ended.stderr).toMatch(stderr);
    };
    // Who only looks makes no store: its path may be mistyped.
    await ask(3, /^jobtable: there is no ledger in .*\n$/, "jobs", "list");
    for (const args of [["jobs", "show", unknown], ["diagnostics"], ["cleanup"]])
      await ask(3, /^jobtable: there is no ledger in .*\n$/, ...args);
    expect(existsSync(join(cwd, ".jobtable"))).toBe(false);
    await run(["submit", "act"], { cwd });
    for (const verb of ["show", "wait", "result", "cancel", "retry"])
      await ask(1, `jobtable: job not found: ${unknown}\n`, "jobs", verb, unknown);
    await ask(2, /^jobtable: "12" is no job id; /, "jobs", "show", "12");
  });

  test("a wait that is over before the job: code 1", async () => {
    const cwd = scratch();
    const { stdout } = await run(["submit", "act"], { cwd });
    const waited = await run(["jobs", "wait", stdout.trim(), "--timeout", "10ms", "--json"], {
      cwd,
    });
    expect(waited.code).toBe(1);
    expect(JSON.parse(waited.stdout)).toMatchObject({ state: "pending" });
  });
});

describe("diagnostics", () => {
  test("where all is well: the same from the store and from the server, and 0", async () => {
    const cwd = scratch();
    const server = await serve(["--max-workers", "2"], { cwd });
    await server.ended(await server.submit({}));
    const text = await run(["diagnostics"], { cwd });
    expect(text).toMatchObject({ code: 0, stderr: "" });
    expect(text.stdout).toMatch(/^Async workers: enabled, max_workers=4, poll_interval=1\.0s\n/);
    expect(text.stdout).toMatch(
      /\nAsked: +sqlite:\.jobtable\/jobs\.db\nLedger: +SQLite 3\.\S+, schema \d/,
    );
    expect(text.stdout).toMatch(/\nWORKER .*\nworker-\w{8}  running .*\n\nNo problems found\.\n$/);
    const store = await run(["diagnostics", "--json", "--max-workers", "2"], { cwd });
    const http = await run(["diagnostics", "--json", "--server", server.url], { cwd });
    expect({ store: store.code, http: http.code }).toEqual({ store: 0, http: 0 });
    const seen = JSON.parse(store.stdout) as Record<string, object>;
    expect(seen).toMatchObject({
      ok: true,
      problems: [],
      async: { enabled: true, max_workers: 2, poll_interval_ms: 1_000 },
      ledger: { kind: "sqlite", now: expect.stringMatching(TIME) as string },
      depth: { queued: 0, running: 0, total: 1, limit: 16, oldest_queued_ms: null },
      workers: [
        {
          worker_id: expect.stringMatching(/^worker-[0-9a-f]{8}$/) as string,
          state: "running",
          processed: expect.any(Number) as number,
          max_workers: 2,
          tasks: ["act", "plan:execute", "plan:apply"],
          pid: server.process.pid,
          last_heartbeat: expect.stringMatching(TIME) as string,
        },
      ],
    });
    // Beside what goes on in time they say the same.
    const { problems, async, depth, stuck, unserved } = seen;
    expect(JSON.parse(http.stdout)).toMatchObject({ problems, async, depth, stuck, unserved });
  });

  test("what is wrong, what to do, and 1", async () => {
    const cwd = scratch();
    const server = await serve(["--max-workers", "1"], { cwd });
    const held = await server.submit({ hold: true });
    await server.until(held, "running");
    server.process.kill("SIGKILL");
    await server.process.ended;
    const waiting = await run(["submit", "act"], { cwd });
    // The worker's row is still fresh; a timeout of a second makes it old soon.
    const args = ["diagnostics", "--worker-timeout", "1", "--async-max-queue", "2"];
    await expect
      .poll(async () => (await run(args, { cwd })).stdout, { timeout: 60_000, interval: 50 })
      .toMatch(/^- worker-\w{8} \(.+, pid \d+\) has been silent .* holds job_\w+; start a worker/m);
    const { code, stdout } = await run([...args, "--json"], { cwd });
    expect(code).toBe(1);
    const { problems, ...seen } = JSON.parse(stdout) as { problems: { kind: string }[] };
    expect(problems.map(({ kind }) => kind)).toEqual(["no_worker", "lost_worker", "queue_full"]);
    expect(seen).toMatchObject({
      ok: false,
      workers: [{ state: "lost" }],
      stuck: [{ job_id: held, task: "act" }],
      oldest_queued: { job_id: waiting.stdout.trim() },
      unserved: [{ task: "act", queued: 1 }],
    });
  });

  test("a ledger out of reach: 3", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "file"), "");
    const { code, stdout, stderr } = await run(["diagnostics", "--store", "sqlite:file/x.db"], {
      cwd,
    });
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(/^jobtable: .+\n$/);
  });
});

test("cleanup forgets what has ended, and nothing else", async () => {
  const cwd = scratch();
  const server = await serve(["--max-workers", "1"], { cwd });
  await Promise.all([1, 2, 3].map(async () => server.ended(await server.submit({}))));
  const held = await server.submit({ hold: true });
  await server.until(held, "running");
  const { stdout } = await run(["cleanup", "--async-max-completed", "1", "--json"], { cwd });
  expect(JSON.parse(stdout)).toEqual({ removed: 2 });
  expect((await run(["cleanup", "--async-job-ttl", "0"], { cwd })).stdout).toBe("1 job removed\n");
  const left = JSON.parse((await run(["jobs", "list", "--json"], { cwd })).stdout) as unknown;
  expect(left).toMatchObject({ jobs: [{ job_id: held, state: "running" }] });
});

test("migrate makes the store, once, and can show how", async () => {
  const cwd = scratch();
  const printed = await run(["migrate", "--print"], { cwd });
  expect(printed.code).toBe(0);
  expect(existsSync(join(cwd, ".jobtable"))).toBe(false);
  const byHand = new Database(":memory:");
  byHand.exec(printed.stdout);
  const made = await run(["migrate", "--json"], { cwd });
  expect(JSON.parse(made.stdout)).toMatchObject({ from: 0, done: true });
  const byOurs = new Database(join(cwd, ".jobtable/jobs.db"));
  const objects = (database: Database.Database): unknown =>
    database.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").all();
  expect(objects(byHand)).toEqual(objects(byOurs));
  byOurs.close();
  byHand.close();
  expect((await run(["migrate"], { cwd })).stdout).toMatch(/: up to date \(version \d+\)\n$/);
  for (const command of ["migrate", "cleanup"])
    expect(await run([command, "--server", "http://127.0.0.1:1"], { cwd })).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/works on the store itself/) as string,
    });
});

test("config shows every setting and where it came from", async () => {
  const cwd = scratch();
  mkdirSync(join(cwd, "etc"));
  writeFileSync(join(cwd, "etc/j.json"), '{"poll_interval": "250ms"}');
  const args = ["config", "--config", "etc/j.json", "--port", "0", "--json"];
  const { code, stdout } = await run(args, { cwd, env: { JOBTABLE_AUTH_TOKEN: "s3cret" } });
  expect(code).toBe(0);
  expect(stdout).not.toContain("s3cret");
  expect(JSON.parse(stdout)).toMatchObject({
    port: { value: 0, origin: "--port" },
    auth_token: { value: "***", origin: "JOBTABLE_AUTH_TOKEN" },
    poll_interval: { value: 250, unit: "ms", origin: "etc/j.json" },
    max_workers: { value: 4, origin: "default" },
  });
});

test("help and version: code 0; wrong use: code 2", async () => {
  const cwd = scratch();
  const version = await run(["--version"], { cwd });
  expect(version).toMatchObject({ code: 0, stderr: "" });
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  const help = await run(["jobs", "show", "--help"], { cwd });
  expect(help.code).toBe(0);
  expect(help.stdout).toContain("Example:\n  $ jobtable jobs show job_");
  expect(await run([], { cwd })).toMatchObject({ code: 2, stdout: "" });
  expect(await run(["jobs"], { cwd })).toMatchObject({ code: 2, stdout: "" });
  expect(await run(["frob"], { cwd })).toMatchObject({
    code: 2,
    stderr: "jobtable: unknown command 'frob'\n",
  });
});
