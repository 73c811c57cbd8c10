/**
 * Git as a program, called with lists of arguments and never through a shell. Output is bounded, or
 * taken record by record.
 */
import { JobtableError } from "../../job/errors.js";
import type { Clock } from "../../runtime/clock.js";
import { GIT_OPTIONS, gitEnvironment, type Environment } from "./environment.js";
import { failed, runGit, type GitEnd } from "./git-process.js";

export interface GitHost {
  /** Of the process; variables that start with GIT_ are not handed on. */
  readonly env: Environment;
  readonly clock: Clock;
}

export interface GitCall {
  readonly args: readonly string[];
  readonly cwd: string;
  /** Added to the environment: which repository, index, work tree. */
  readonly env?: Environment;
  readonly input?: Uint8Array;
  readonly signal?: AbortSignal | undefined;
  /** Of standard output; more is an `OutputTooLarge`. */
  readonly maxBytes?: number;
}

export interface GitAnswer extends GitEnd {
  readonly stdout: Buffer;
}

/** Thrown when a call answers with more than its `maxBytes`. */
export class OutputTooLarge extends Error {
  constructor(maxBytes: number) {
    super(`git answered with more than ${String(maxBytes)} bytes`);
    this.name = "OutputTooLarge";
  }
}

/** Ids, paths and settings: what is longer is none of these. Lists are read as records. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** One name; PATH_MAX is 4096 on all systems that this runs on. */
const MAX_RECORD_BYTES = 1024 * 1024;

export class Git {
  readonly #host: GitHost;

  constructor(host: GitHost) {
    this.#host = host;
  }

  /** Answers also when git says no: its `code` is not 0 then. */
  async ask(call: GitCall): Promise<GitAnswer> {
    const maxBytes = call.maxBytes ?? MAX_OUTPUT_BYTES;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const end = await this.#run(call, (chunk) => {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new OutputTooLarge(maxBytes);
      chunks.push(chunk);
    });
    return { ...end, stdout: Buffer.concat(chunks) };
  }

  /** @throws JobtableError `git_failed` when git says no. */
  async run(call: GitCall): Promise<Buffer> {
    const answer = await this.ask(call);
    if (answer.code !== 0) throw failed(call, answer.stderr);
    return answer.stdout;
  }

  /** The output without its last line end. */
  async text(call: GitCall): Promise<string> {
    const text = (await this.run(call)).toString("utf8");
    return text.endsWith("\n") ? text.slice(0, -1) : text;
  }

  /** Hands on what stands between NULs, as it comes: names are bytes, and may hold line ends. */
  async records(call: GitCall, take: (record: Buffer) => void): Promise<void> {
    let rest: Buffer = Buffer.alloc(0);
    const end = await this.#run(call, (chunk) => {
      const whole = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let at = whole.indexOf(0); at !== -1; at = whole.indexOf(0, from)) {
        take(whole.subarray(from, at));
        from = at + 1;
      }
      rest = whole.subarray(from);
      if (rest.length > MAX_RECORD_BYTES) throw new OutputTooLarge(MAX_RECORD_BYTES);
    });
    if (end.code !== 0) throw failed(call, end.stderr);
  }

  #run(call: GitCall, take: (chunk: Buffer) => void): Promise<GitEnd> {
    return runGit(
      {
        args: [...GIT_OPTIONS, ...call.args],
        cwd: call.cwd,
        env: gitEnvironment(this.#host.env, call.env ?? {}),
        input: call.input ?? null,
        signal: call.signal ?? null,
        take,
      },
      this.#host.clock,
    );
  }
}

/** Below it `git worktree` and `git apply` lack what is used here. */
const OLDEST = { major: 2, minor: 30 } as const;

/** @throws JobtableError `invalid_workspace` when git is missing or too old. */
export async function checkVersion(git: Git, cwd: string): Promise<void> {
  const said = await git.text({ args: ["version"], cwd });
  const [, major, minor] = /^git version (\d+)\.(\d+)/.exec(said) ?? [];
  if (isNewEnough(Number(major), Number(minor))) return;
  throw new JobtableError(
    "invalid_workspace",
    `git ${String(OLDEST.major)}.${String(OLDEST.minor)} or newer is needed; this is ${JSON.stringify(said.slice(0, 60))}`,
  );
}

function isNewEnough(major: number, minor: number): boolean {
  return major > OLDEST.major || (major === OLDEST.major && minor >= OLDEST.minor);
}
