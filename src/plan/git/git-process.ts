/**
 * One run of git, from start to end. It has a process group of its own, with the filters that it
 * starts, so that ending it ends all of them: first with SIGTERM, upon which git removes its lock
 * files, then with SIGKILL. The promise settles when the process is gone, never before. After that its
 * output may be held open by a process that left the group; that is waited for only so long.
 */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { existsSync } from "node:fs";
import { JobtableError } from "../../job/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { codeOf } from "../../runtime/error-code.js";

export interface GitStart {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly input: Uint8Array | null;
  readonly signal: AbortSignal | null;
  /** Gets the output as it comes. What it throws ends git, and is what the run rejects with. */
  readonly take: (chunk: Buffer) => void;
}

export interface GitEnd {
  readonly code: number;
  /** What git says of errors, at most `MAX_STDERR_BYTES` of it. */
  readonly stderr: string;
}

/** A patch that fits nowhere has two lines for each of its files. */
const MAX_STDERR_BYTES = 1024 * 1024;
const KILL_AFTER_MS = 2_000;
const DRAIN_MS = 5_000;

export function runGit(start: GitStart, clock: Clock): Promise<GitEnd> {
  return new GitProcess(start, clock).end();
}

class GitProcess {
  readonly #start: GitStart;
  readonly #clock: Clock;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #stderr: Buffer[] = [];
  #stderrBytes = 0;
  #failure: { readonly error: unknown } | null = null;
  #gone = false;
  #cancelTimer: () => void = () => undefined;

  constructor(start: GitStart, clock: Clock) {
    start.signal?.throwIfAborted();
    this.#start = start;
    this.#clock = clock;
    const { cwd, env } = start;
    this.#child = spawn("git", start.args, { cwd, env, detached: true, stdio: "pipe" });
  }

  async end(): Promise<GitEnd> {
    const { signal } = this.#start;
    const aborted = (): void => {
      this.#fail(signal?.reason);
    };
    signal?.addEventListener("abort", aborted, { once: true });
    try {
      const { code, killedBy } = await this.#closed();
      if (this.#failure !== null) throw this.#failure.error;
      if (code === null) throw failed(this.#start, `it was ended by ${String(killedBy)}`);
      return { code, stderr: Buffer.concat(this.#stderr).toString("utf8") };
    } finally {
      signal?.removeEventListener("abort", aborted);
      this.#cancelTimer();
    }
  }

  #closed(): Promise<{ code: number | null; killedBy: NodeJS.Signals | null }> {
    const child = this.#child;
    child.stdout.on("data", (chunk: Buffer) => {
      this.#take(chunk);
    });
    child.stderr.on("data", (chunk: Buffer) => {
      const room = MAX_STDERR_BYTES - this.#stderrBytes;
      if (room > 0) this.#stderr.push(chunk.subarray(0, room));
      this.#stderrBytes += chunk.length;
    });
    // git may end without having read all: what it says then is in its exit code.
    child.stdin.on("error", () => undefined);
    child.stdin.end(this.#start.input ?? undefined);
    child.on("exit", () => {
      this.#exited();
    });
    return new Promise((resolve, reject) => {
      child.on("error", (error) => {
        reject(notStarted(this.#start, error));
      });
      child.on("close", (code, killedBy) => {
        resolve({ code, killedBy });
      });
    });
  }

  #take(chunk: Buffer): void {
    if (this.#failure !== null) return;
    try {
      this.#start.take(chunk);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = { error };
    this.#kill("SIGTERM");
    if (this.#gone) return;
    this.#cancelTimer = this.#clock.timer(KILL_AFTER_MS, () => {
      this.#kill("SIGKILL");
    });
  }

  #exited(): void {
    this.#gone = true;
    this.#cancelTimer();
    if (this.#failure !== null) this.#kill("SIGKILL");
    this.#cancelTimer = this.#clock.timer(DRAIN_MS, () => {
      this.#child.stdout.destroy();
      this.#child.stderr.destroy();
    });
  }

  /** The whole group; one that is gone already is what was wanted. */
  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch (error) {
      if (codeOf(error) !== "ESRCH") throw error;
    }
  }
}

function notStarted(start: GitStart, error: Error): JobtableError {
  // The system's answer is the same whether the program or the folder is missing.
  if ("code" in error && error.code === "ENOENT" && existsSync(start.cwd))
    return new JobtableError("invalid_workspace", "git is not installed: no git in PATH", {
      cause: error,
    });
  return failed(start, error.message, error);
}

/** @param why git's own words or the system's, of which the first line is kept. */
export function failed(
  start: Pick<GitStart, "args" | "cwd">,
  why: string,
  cause?: unknown,
): JobtableError {
  const reason = why.trim().split("\n", 1)[0] ?? "";
  return new JobtableError(
    "git_failed",
    `git ${verbOf(start.args)} in ${JSON.stringify(start.cwd)}: ${reason === "" ? "failed" : reason}`,
    { cause },
  );
}

/** The first word that is no option of git itself. */
function verbOf(args: readonly string[]): string {
  const at = args.findIndex((arg, index) => !arg.startsWith("-") && args[index - 1] !== "-c");
  return args[at] ?? "";
}
