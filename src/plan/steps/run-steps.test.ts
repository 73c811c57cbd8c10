/** Steps with real processes. Nothing here waits for time to pass: processes say what they do. */
import { execFileSync } from "node:child_process";
import { constants, closeSync, openSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemClock } from "../../runtime/clock.js";
import { silentLogger } from "../../runtime/logger.js";
import { planFromObject } from "../file/from-object.js";
import type { EndedStep, StartedStep, StepsEnding, StepsRequest, TaskPort } from "./api.js";
import { runSteps } from "./run-steps.js";

let root = "";
let tree = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "jobtable-steps-"));
  tree = join(root, "tree");
  await mkdir(tree);
  await mkdir(join(root, "scratch"));
});
afterEach(async () => {
  expect(await readdir(join(root, "scratch"))).toEqual([]);
  await rm(root, { recursive: true });
});

type Written = Readonly<Record<string, unknown>> | string;

interface Run {
  readonly ending: StepsEnding;
  readonly ended: readonly EndedStep[];
}

interface Options extends Partial<Omit<StepsRequest, "listener" | "steps" | "plan">> {
  readonly planEnv?: Readonly<Record<string, string>>;
  readonly wrote?: (text: string, step: StartedStep) => void;
}

/** @param written steps as in a plan file; a text is a command. */
async function run(written: readonly Written[], options: Options = {}): Promise<Run> {
  const steps = written.map((step) => (typeof step === "string" ? { run: step } : step));
  const plan = planFromObject({ name: "p", execute: steps, env: options.planEnv ?? {} });
  const ended: EndedStep[] = [];
  const started: StartedStep[] = [];
  const ending = await runSteps({
    dir: tree,
    env: process.env,
    signal: new AbortController().signal,
    clock: systemClock,
    logger: silentLogger,
    graceMs: 10_000,
    tasks: { run: () => Promise.reject(new Error("no tasks here")) },
    scratch: join(root, "scratch"),
    ...options,
    steps: plan.execute,
    plan: { name: plan.name, phase: "execute", env: plan.env },
    listener: {
      stepStarted: (step) => started.push(step),
      stepWrote: (step, _, bytes) => options.wrote?.(Buffer.from(bytes).toString(), step),
      stepEnded: (step) => ended.push(step),
    },
  });
  // One record each, in order, and a start for each that was not skipped.
  expect(ended.map(({ index }) => index)).toEqual(steps.map((_, index) => index));
  const ran = ended.filter(({ state }) => state !== "skipped");
  expect(started.map(({ index }) => index)).toEqual(ran.map(({ index }) => index));
  return { ending, ended };
}

async function runOne(step: Written, options: Options = {}): Promise<EndedStep> {
  const { ended } = await run([step], options);
  const [only] = ended;
  if (only === undefined) throw new Error("no record");
  return only;
}

/** A FIFO; `gone` resolves when all processes that hold its other end have ended, with what they wrote. */
function lifeline(): { readonly path: string; readonly gone: Promise<string>; drop(): void } {
  const path = join(root, "alive");
  execFileSync("mkfifo", [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  // Held until a process of the test has it open: before that there is no end to be seen.
  const holder = openSync(path, constants.O_WRONLY);
  const socket = new Socket({ fd: reader, readable: true, writable: false });
  const chunks: Buffer[] = [];
  socket.on("data", (chunk) => chunks.push(chunk));
  const gone = new Promise<string>((resolve) => {
    socket.once("end", () => resolve(Buffer.concat(chunks).toString()));
  });
  return { path, gone, drop: () => closeSync(holder) };
}

describe("a command", () => {
  it("finds its folder, its variables, an empty input and a stderr that can be opened", async () => {
    await mkdir(join(tree, "a/b"), { recursive: true });
    const env = {
      ...process.env,
      KEPT: "1",
      JOBTABLE_STORE: "secret",
      CLEVERAGENTS_TOKEN: "secret",
      GIT_DIR: "/elsewhere",
      OLDPWD: "/elsewhere",
    };
    const show = `pwd; echo "$PWD" "$KEPT" "$A" "$B" "$C" "\${D-unset}" "$JOBTABLE_PLAN" "$JOBTABLE_PHASE" "$JOBTABLE_WORKSPACE"
env | grep -E "secret|elsewhere" || echo clean
cat; echo there > /dev/stderr; echo "$0"; ps -o sid= -o pgid= -o pid= -p $$ | tr -s ' ' '\\n' | sort -u | grep -c .`;
    const step = { run: show, cwd: "a/b", env: { B: "step", C: "${{ workspace }}" } };
    const { log, state } = await runOne(step, { env, planEnv: { A: "plan", B: "plan" } });
    const cwd = join(tree, "a/b");
    // What comes over stderr comes when it comes.
    const lines = log.split("\n");
    expect(lines).toContain("there");
    expect(lines.filter((line) => line !== "there")).toEqual([
      cwd,
      `${cwd} 1 plan step ${tree} unset p execute ${tree}`,
      "clean",
      "sh",
      "1",
      "",
    ]);
    expect(state).toBe("succeeded");
  });

  it("has no descriptor but its three", async () => {
    const script =
      "for fd in 3 4 5 6 7 8; do (exec 9>&$fd) 2>/dev/null && echo $fd; done; echo done";
    expect((await runOne(script)).log).toBe("done\n");
  });

  it("ends with its own exit code or signal", async () => {
    const ends = await Promise.all(
      ["exit 7", "exit 130", "kill -INT $$", "kill -KILL $$", "true"].map(async (script) => {
        const { state, exitCode, signal, errorMessage } = await runOne(script);
        return [state, exitCode, signal, errorMessage];
      }),
    );
    expect(ends).toEqual([
      ["failed", 7, null, "CommandFailed: exit code 7"],
      ["failed", 130, null, "CommandFailed: exit code 130"],
      ["failed", null, "SIGINT", "CommandFailed: ended by SIGINT"],
      ["failed", null, "SIGKILL", "CommandFailed: ended by SIGKILL"],
      ["succeeded", 0, null, null],
    ]);
  });

  it("stops at its first failure, by default and in another shell", async () => {
    expect(await runOne("echo a; false; echo b")).toMatchObject({ log: "a\n", exitCode: 1 });
    const step = { run: "echo a; false | true; echo b", shell: "bash -eo pipefail -c" };
    expect(await runOne(step)).toMatchObject({ log: "a\n", exitCode: 1 });
    const node = { run: "process.stdout.write(process.argv.length + '')", shell: "node -e" };
    expect(await runOne(node)).toMatchObject({ log: "1", exitCode: 0 });
  });

  it("writes both streams into one log, as it comes", async () => {
    const go = join(root, "go");
    execFileSync("mkfifo", [go]);
    const seen: string[] = [];
    const wrote = (text: string): void => {
      seen.push(text);
      closeSync(openSync(go, "w"));
    };
    const script = `for n in 1 2; do echo out$n; read x < "$GO" || :; echo err$n >&2; read x < "$GO" || :; done`;
    const { log } = await runOne({ run: script, env: { GO: go } }, { wrote });
    expect(seen).toEqual(["out1\n", "err1\n", "out2\n", "err2\n"]);
    expect(log).toBe(seen.join(""));
  });

  it("may write without end: memory stays, and the log has both ends of it", async () => {
    const bytes = 200_000_000;
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let most = before;
    let seen = 0;
    const wrote = (text: string): void => {
      seen += text.length;
      most = Math.max(most, process.memoryUsage.rss());
    };
    const script = `echo begin; yes 0123456789 | head -c ${String(bytes)}; echo end`;
    const { state, log, logBytes } = await runOne({ run: script, id: "a" }, { wrote });
    expect([state, logBytes, seen]).toEqual(["succeeded", bytes + 10, bytes + 10]);
    expect(log.length).toBeLessThan(257 * 1024);
    expect(log.startsWith("begin\n0123456789\n")).toBe(true);
    expect(log.endsWith("\nend\n") || log.endsWith("end\n")).toBe(true);
    expect(log).toMatch(/\n\[\.\.\. 1997\d{5} bytes left out \.\.\.\]\n/);
    expect(most - before).toBeLessThan(120 * 1024 * 1024);
  });
});

describe("what a command started", () => {
  it("doesn't outlive it, nor hold up its end: in the background, closed off, or in a session of its own", async () => {
    const alive = lifeline();
    const script = `exec 9> "$ALIVE"
sleep 1000 &
sh -c "trap '' TERM HUP; while :; do sleep 1000; done" > /dev/null 2>&1 &
env -i "$(command -v sleep)" 1000 &
setsid sh -c 'echo session >&9; sleep 1000 & sleep 1000' &
setsid -f sh -c 'sleep 1000'
for n in $(seq 150); do sleep 1000 & done
echo begun`;
    const wrote = (): void => alive.drop();
    const step = { run: script, env: { ALIVE: alive.path } };
    const { state, log, exitCode } = await runOne(step, { wrote });
    expect([state, exitCode, log]).toEqual(["succeeded", 0, "begun\n"]);
    expect(await alive.gone).toMatch(/^(session\n)?$/);
  });

  it("goes on while it runs, also without its output", async () => {
    const [told, go] = [join(root, "told"), join(root, "go")];
    execFileSync("mkfifo", [told, go]);
    const script = `echo out; exec > /dev/null 2>&1; echo closed > "$TOLD"; read x < "$GO"; exit 5`;
    const ended = runOne({ run: script, env: { TOLD: told, GO: go } });
    const reader = new Socket({ fd: openSync(told, constants.O_RDONLY | constants.O_NONBLOCK) });
    await new Promise((resolve) => reader.once("data", resolve));
    reader.destroy();
    await writeFile(go, "on\n");
    expect(await ended).toMatchObject({ state: "failed", exitCode: 5, log: "out\n" });
  });
});

describe("a step that has to stop", () => {
  it("is killed when it ignores that its time is up", async () => {
    const alive = lifeline();
    const script = `exec 9> "$ALIVE"; trap '' TERM; sh -c "trap '' TERM; while :; do sleep 1000; done" & echo up; while :; do sleep 1000; done`;
    const step = { run: script, timeout: "500ms", env: { ALIVE: alive.path } };
    const options = { graceMs: 50, wrote: () => alive.drop() };
    const { ending, ended } = await run([step, "echo never"], options);
    expect(ended[0]).toMatchObject({
      state: "timed_out",
      exitCode: null,
      signal: "SIGKILL",
      errorMessage: "TimeLimit: it took longer than its limit of 500 ms",
    });
    expect(ended[1]?.state).toBe("skipped");
    expect(ending).toMatchObject({
      kind: "failed",
      errorMessage:
        "StepFailed: step 1 of 2 (exec 9> \"$ALIVE\"; trap '' TERM; sh -c \"trap '' TERM; while …): TimeLimit: it took longer than its limit of 500 ms",
    });
    await alive.gone;
  });

  it("may clean up within the grace, also behind a shell that has gone at once", async () => {
    const abort = new AbortController();
    const child = `trap 'sleep 0; echo cleaned; exit' TERM; sleep 1000 & echo up; wait`;
    const script = `sh -c "$CHILD" & wait`;
    const options = { signal: abort.signal, wrote: () => abort.abort() };
    const { ending, ended } = await run([{ run: script, env: { CHILD: child } }, "true"], options);
    expect(ending).toEqual({ kind: "cancelled" });
    expect(ended).toMatchObject([
      { state: "cancelled", signal: "SIGTERM", errorMessage: null },
      { state: "skipped", startedAtMs: null, finishedAtMs: null },
    ]);
    // Some shells say what became of the sleep.
    expect(ended[0]?.log).toMatch(/^up\n(Terminated\n)?cleaned\n$/);
  });

  it("does not run when it was to stop before it began", async () => {
    const { ending, ended } = await run(["touch made"], { signal: AbortSignal.abort() });
    expect(ending).toEqual({ kind: "cancelled" });
    expect(ended.map(({ state }) => state)).toEqual(["skipped"]);
    expect(await readdir(tree)).toEqual([]);
  });

  it("is cancelled even when it then ends as if nothing had been", async () => {
    const abort = new AbortController();
    const script = `trap 'exit 0' TERM; sleep 1000 & echo up; wait`;
    const step = { run: script, continue_on_error: true };
    const options = { signal: abort.signal, wrote: () => abort.abort() };
    const { ending, ended } = await run([step, "true"], options);
    expect(ending).toEqual({ kind: "cancelled" });
    expect(ended.map(({ state, exitCode }) => [state, exitCode])).toEqual([
      ["cancelled", 0],
      ["skipped", null],
    ]);
  });
});

describe("after a step that failed", () => {
  it("the others are skipped", async () => {
    const { ending, ended } = await run(["true", { run: "exit 3", name: "Check" }, "true"]);
    expect(ended.map(({ state }) => state)).toEqual(["succeeded", "failed", "skipped"]);
    expect(ending).toEqual({
      kind: "failed",
      step: ended[1],
      errorMessage: "StepFailed: step 2 of 3 (Check): CommandFailed: exit code 3",
    });
  });

  it("the others go on where it says so, whatever went wrong", async () => {
    const go = { continue_on_error: true };
    const { ending, ended } = await run([
      { run: "exit 3", id: "a", ...go },
      { run: "sleep 1000", timeout: "50ms", ...go },
      { run: "true", cwd: "nowhere", ...go },
      { task: "t", ...go },
      { run: 'echo "$CODE"', env: { CODE: "${{ steps.a.exit_code }}" } },
    ]);
    expect(ending).toEqual({ kind: "succeeded" });
    expect(ended.map(({ state, errorMessage }) => [state, errorMessage])).toEqual([
      ["failed", "CommandFailed: exit code 3"],
      ["timed_out", "TimeLimit: it took longer than its limit of 50 ms"],
      ["failed", 'InvalidCwd: the folder "nowhere" is not there'],
      ["failed", "Error: no tasks here"],
      ["succeeded", null],
    ]);
    expect(ended[4]?.log).toBe("3\n");
  });
});

describe("a step that can't begin", () => {
  const failed = async (step: Written, options: Options = {}): Promise<string | null> => {
    const { state, errorMessage, log } = await runOne(step, options);
    expect([state, log]).toEqual(["failed", ""]);
    return errorMessage;
  };

  it("says what is wrong with its folder", async () => {
    await symlink(root, join(tree, "out"));
    await symlink("loop", join(tree, "loop"));
    await writeFile(join(tree, "file"), "");
    expect(await failed({ run: "true", cwd: "out" })).toBe(
      'InvalidCwd: the folder "out" leads out of the working tree',
    );
    expect(await failed({ run: "true", cwd: "loop" })).toBe(
      'InvalidCwd: the folder "loop" is a circle of links',
    );
    expect(await failed({ run: "true", cwd: "file" })).toBe(
      'InvalidCwd: the folder "file" is no folder',
    );
    expect(await failed({ run: "true", cwd: "${{ workspace }}/.." })).toBe(
      `InvalidCwd: the folder "${tree}/.." leads out of the working tree`,
    );
  });

  it("says what is wrong with its shell", async () => {
    await writeFile(join(tree, "plain"), "echo a");
    expect(await failed({ run: "true", shell: "no-such-shell -c" })).toBe(
      'ShellNotFound: the shell "no-such-shell" is not in PATH',
    );
    expect(await failed({ run: "true", shell: "./gone -c" })).toBe(
      'ShellNotFound: the shell "./gone" is not there',
    );
    expect(await failed({ run: "true", shell: "./plain" })).toBe(
      'ShellNotFound: the shell "./plain" may not be executed',
    );
    expect(await failed({ run: "true", env: { PATH: "/nowhere:" } })).toBe(
      'ShellNotFound: the shell "sh" is not in PATH',
    );
  });

  it("says what is too large for a process", async () => {
    const env = { ...process.env, SMALL: "x", BIG: "x".repeat(200_000) };
    expect(await failed("true", { env })).toBe(
      "SpawnFailed: the command and its variables are more than the system takes (E2BIG); the largest is BIG with 200000 bytes: pass it by a file",
    );
  });

  it("says why its guard could not start", async () => {
    const scratch = join(root, "nowhere");
    expect(await failed("true", { scratch })).toMatch(
      /^SpawnFailed: the guard of the step can't be started: mkfifo: .*No such file or directory$/,
    );
  });

  it("says which expression asks for what isn't there", async () => {
    const steps = [
      { run: "echo '[1]'", id: "a" },
      { run: "true", env: { A: "${{ steps.a.output[1] }}" } },
    ];
    const { ended } = await run(steps);
    expect(ended[1]?.errorMessage).toBe(
      "ExpressionFailed: there is no [1] in steps.a.output: it is a list of 1",
    );
  });
});

describe("a task", () => {
  const answer = (ending: Awaited<ReturnType<TaskPort["run"]>>): TaskPort => ({
    run: () => Promise.resolve(ending),
  });

  it("gets its input evaluated, and gives its result to later steps", async () => {
    const asked: unknown[] = [];
    const tasks: TaskPort = {
      run: (task, input, { timeoutMs }) => {
        asked.push([task, input, timeoutMs]);
        return Promise.resolve({ kind: "succeeded", resultJson: '{"words":[{"text":"a b"}]}' });
      },
    };
    const { ending, ended } = await run(
      [
        { run: "echo '{\"n\": 5}'; echo noise >&2", id: "c" },
        {
          task: "ocr",
          id: "t",
          timeout: "2s",
          input: { n: "${{ steps.c.output.n }}", text: "${{ steps.c.stdout }}!" },
        },
        { run: 'echo "$TEXT"', env: { TEXT: "${{ steps.t.output.words[0].text }}" } },
      ],
      { tasks },
    );
    expect(asked).toEqual([["ocr", { n: 5, text: '{"n": 5}!' }, 2_000]]);
    expect(ending).toEqual({ kind: "succeeded" });
    expect(ended[1]).toMatchObject({ kind: "task", exitCode: null, log: "", logBytes: 0 });
    expect(ended[2]?.log).toBe("a b\n");
  });

  it("ends the step as it ended", async () => {
    const of = async (ending: Awaited<ReturnType<TaskPort["run"]>>): Promise<unknown[]> => {
      const { state, errorMessage } = await runOne({ task: "t" }, { tasks: answer(ending) });
      return [state, errorMessage];
    };
    expect(await of({ kind: "failed", errorMessage: "RangeError: x" })).toEqual([
      "failed",
      "RangeError: x",
    ]);
    expect(await of({ kind: "timed_out", errorMessage: "TimeLimit: 7 ms" })).toEqual([
      "timed_out",
      "TimeLimit: 7 ms",
    ]);
    expect(await of({ kind: "unknown_task", known: ["a", "b"] })).toEqual([
      "failed",
      "UnknownTask: no task is named t; known here: a, b",
    ]);
    const cancelled = await run([{ task: "t", continue_on_error: true }, "true"], {
      tasks: answer({ kind: "cancelled" }),
    });
    expect(cancelled.ending).toEqual({ kind: "cancelled" });
  });

  it("is told to stop with the run", async () => {
    const abort = new AbortController();
    const tasks: TaskPort = {
      run: (_task, _input, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () => resolve({ kind: "cancelled" }));
          abort.abort();
        }),
    };
    const { ending, ended } = await run([{ task: "t" }, "true"], { tasks, signal: abort.signal });
    expect(ending).toEqual({ kind: "cancelled" });
    expect(ended.map(({ state }) => state)).toEqual(["cancelled", "skipped"]);
  });
});
