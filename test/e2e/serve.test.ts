/** A serving process: how it starts, refuses to start, and ends. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../postgres-server.js";
import { ACT, Process, run, scratch, serve } from "./server.js";

describe("starting", () => {
  test("says where it listens, what it serves, and a line that works when it is pasted", async () => {
    const cwd = scratch();
    const server = await serve([], { cwd });
    const [, line = ""] = await server.process.says(/^try: (.+)$/m);
    expect(server.process.stdout).toContain(
      `jobtable listening on ${server.url}\ntasks: act (default)\nstore: sqlite:.jobtable/jobs.db\n`,
    );
    const reply = JSON.parse(execFileSync("sh", ["-c", line], { cwd, encoding: "utf8" })) as {
      job_id: string;
    };
    expect(await server.ended(reply.job_id)).toMatchObject({ state: "done" });
  });

  test("--json says it in one line", async () => {
    const process = new Process(["serve", ACT, "--port", "0", "--store", "memory", "--json"], {
      cwd: scratch(),
    });
    const [line] = await process.says(/^\{.*\}$/m);
    expect(JSON.parse(line)).toEqual({
      url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string,
      tasks: ["act"],
      default_task: "act",
      store: "memory",
      worker: true,
    });
  });

  test("takes settings from the environment and from a file", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "jobtable.config.json"), '{"async_max_queue": 1, "max_workers": 1}');
    const server = await serve(["--store", "memory"], {
      cwd,
      env: { JOBTABLE_ASYNC_MAX_QUEUE: "0" },
    });
    const refused = await server.call("POST", "/jobs", { task: "act", input: {} });
    expect(refused.status).toBe(429);
    expect(refused.json["error"]).toBe("async queue full (max 0)");
  });

  test("async off: no jobs, but answers", async () => {
    const server = await serve(["--store", "memory", "--no-async-enabled"], { cwd: scratch() });
    expect((await server.call("POST", "/jobs", { say: "x" })).status).toBe(404);
    const reply = await server.call("POST", "/tasks/act", { say: "x" });
    expect(reply.json).toMatchObject({ code: 0, data: { said: "x" } });
  });
});

describe("refusing to start, in one line", () => {
  const refusal = async (
    args: readonly string[],
    cwd = scratch(),
  ): Promise<{ code: number | null; line: string }> => {
    const { code, stdout, stderr } = await run(["serve", ...args], { cwd });
    expect(stdout).toBe("");
    return { code, line: stderr };
  };

  test("the port is taken", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void other.close());
    await once(other, "listening");
    const { port } = other.address() as AddressInfo;
    expect(await refusal([ACT, "--store", "memory", "--port", String(port)])).toEqual({
      code: 2,
      line: `jobtable: can't listen on 127.0.0.1:${port}: another process listens there; stop it, or choose another --port (0 picks a free one)\n`,
    });
  });

  test("the store is no database", async () => {
    const cwd = scratch();
    writeFileSync(
      join(cwd, "jobs.db"),
      "not a database, but long enough to look like a file of one".repeat(20),
    );
    const { code, line } = await refusal([ACT, "--port", "0", "--store", "sqlite:jobs.db"], cwd);
    expect(code).toBe(3);
    expect(line).toMatch(/^jobtable: [^\n]*jobs\.db[^\n]*\n$/);
  });

  test("the store can't be reached", async () => {
    const cwd = scratch();
    writeFileSync(join(cwd, "file"), "");
    const { code, line } = await refusal(
      [ACT, "--port", "0", "--store", "sqlite:file/jobs.db"],
      cwd,
    );
    expect(code).toBe(3);
    expect(line).toMatch(/^jobtable: [^\n]+\n$/);
  });

  test.each([
    [[], /no tasks given/],
    [["nowhere.ts"], /nowhere\.ts/],
    [[ACT, "--host", "0.0.0.0"], /setting host: 0\.0\.0\.0 .*auth_token must be set/],
    [[ACT, "--default-task", "ocr"], /setting default_task: no task is named ocr; known: act/],
    [[ACT, "--max-workers", "many"], /setting max_workers \(--max-workers\): "many" is not/],
    [
      [ACT, "--max-wrokers", "4"],
      /unknown option '--max-wrokers' \(Did you mean --max-workers\?\)/,
    ],
  ])("%j", async (args, message) => {
    const { code, line } = await refusal(args);
    expect(code).toBe(2);
    expect(line).toMatch(/^jobtable: [^\n]+\n$/);
    expect(line).toMatch(message);
  });
});

describe("ending", () => {
  test("SIGTERM with a running job: told to stop, recorded, exit 0", async () => {
    const cwd = scratch();
    const server = await serve(["--max-workers", "1"], { cwd });
    const held = await server.submit({ hold: true });
    const waiting = await server.submit({ say: "later" });
    await server.until(held, "running");
    server.process.kill("SIGTERM");
    expect(await server.process.ended).toEqual({ code: 0, signal: null });
    const { stdout } = await run(["jobs", "list", "--json"], { cwd });
    const { jobs } = JSON.parse(stdout) as { jobs: { job_id: string; state: string }[] };
    expect(jobs.map(({ job_id, state }) => [job_id, state])).toEqual([
      [waiting, "pending"],
      [held, "cancelled"],
    ]);
  });

  test("a wait under way is answered, and new jobs are refused", async () => {
    const server = await serve(["--store", "memory"], { cwd: scratch() });
    const held = await server.submit({ hold: true });
    await server.until(held, "running");
    const waiting = server.call("GET", `/jobs/${held}/wait?timeout=60000`);
    server.process.kill("SIGINT");
    expect((await waiting).status).toBe(200);
    expect(await server.process.ended).toEqual({ code: 0, signal: null });
  });

  test("a second signal ends at once", async () => {
    const args = ["--store", "memory", "--shutdown-timeout", "1h", "--cancel-grace", "1h"];
    const server = await serve(args, { cwd: scratch() });
    const deaf = await server.submit({ deaf: true });
    await server.until(deaf, "running");
    server.process.kill("SIGTERM");
    await server.process.says(/stopping; the same signal again ends at once/, "stderr");
    server.process.kill("SIGTERM");
    expect(await server.process.ended).toEqual({ code: 143, signal: null });
  });

  test("a handler that is deaf does not hold it up", async () => {
    const args = ["--store", "memory", "--shutdown-timeout", "100ms", "--cancel-grace", "100ms"];
    const server = await serve(args, { cwd: scratch() });
    const deaf = await server.submit({ deaf: true });
    await server.until(deaf, "running");
    server.process.kill("SIGTERM");
    expect(await server.process.ended).toEqual({ code: 0, signal: null });
  });

  test("a client that never finishes its request does not hold it up", async () => {
    const server = await serve(["--store", "memory"], { cwd: scratch() });
    const { port } = new URL(server.url);
    const client = connect(Number(port), "127.0.0.1");
    onTestFinished(() => void client.destroy());
    client.on("error", () => undefined);
    client.write(
      "POST /jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n" +
        "\r\n{",
    );
    // The request has arrived, and its body has not.
    expect((await server.call("GET", "/ready")).status).toBe(200);
    server.process.kill("SIGTERM");
    expect(await server.process.ended).toEqual({ code: 0, signal: null });
  });

  test("so does one that waits for its database server", async () => {
    const [port, store] = [await freePort(), `postgres://127.0.0.1:${await freePort()}/db`];
    const args = ["serve", ACT, "--store", store, "--port", String(port)];
    const process = new Process(args, { cwd: scratch() });
    await process.says(/the ledger can't be reached yet/, "stderr");
    process.kill("SIGTERM");
    expect(await process.ended).toEqual({ code: 0, signal: null });
    expect(process.stdout).toBe("");
  });

  test("an idle worker process ends too", async () => {
    const process = new Process(["worker", ACT, "--store", "sqlite:jobs.db"], { cwd: scratch() });
    await process.says(/ready/);
    process.kill("SIGINT");
    expect(await process.ended).toEqual({ code: 0, signal: null });
  });
});
