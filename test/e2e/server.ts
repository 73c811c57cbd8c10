/**
 * Runs the built command line as a user does, in child processes and over real HTTP. Everything
 * that is started is killed when its test has ended, and every folder removed. Nothing here sleeps:
 * it waits for a line of output, a process's end, or a long poll.
 */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { onTestFinished, vi } from "vitest";

// A test starts up to ten processes, and the machine may be busy with others.
vi.setConfig({ testTimeout: 120_000 });

export const MAIN = resolve(import.meta.dirname, "../../dist/cli/main.js");
export const ACT = resolve(import.meta.dirname, "tasks/act.ts");

/** What was set for whoever runs the tests must not leak into what they start. */
const ENV = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^((JOBTABLE|CLEVERAGENTS)_|(NO|FORCE)_COLOR$)/.test(name),
  ),
);

/** A folder of its own for this test. */
export function scratch(): string {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-e2e-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

export interface StartOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** One running command. */
export class Process {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #looks = new Set<() => void>();
  readonly ended: Promise<Ended>;
  stdout = "";
  stderr = "";
  #over = false;

  constructor(args: readonly string[], { cwd, env = {} }: StartOptions) {
    this.#child = spawn(process.execPath, [MAIN, ...args], {
      cwd,
      env: { ...ENV, ...env },
      stdio: "pipe",
    });
    // A command that does not read its input may be gone before the input is.
    this.#child.stdin.on("error", () => undefined);
    this.#child.stdout
      .setEncoding("utf8")
      .on("data", (text: string) => this.#heard("stdout", text));
    this.#child.stderr
      .setEncoding("utf8")
      .on("data", (text: string) => this.#heard("stderr", text));
    this.ended = once(this.#child, "close").then(([code, signal]: unknown[]) => {
      this.#over = true;
      for (const look of this.#looks) look();
      return { code: code as number | null, signal: signal as NodeJS.Signals | null };
    });
    onTestFinished(async () => {
      this.kill("SIGKILL");
      await this.ended;
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.#over) this.#child.kill(signal);
  }

  /** Reads no more of its output, as `| head` does when it has enough. */
  deaf(): void {
    this.#child.stdout.destroy();
  }

  input(text: string): void {
    this.#child.stdin.end(text);
  }

  /** Resolves with the match as soon as the output has it; rejects when the process ends without. */
  says(pattern: RegExp, where: "stdout" | "stderr" = "stdout"): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      const look = (): void => {
        const found = pattern.exec(this[where]);
        if (found === null && !this.#over) return;
        this.#looks.delete(look);
        if (found !== null) resolve(found);
        else reject(new Error(`ended without ${String(pattern)}:\n${this.stdout}${this.stderr}`));
      };
      this.#looks.add(look);
      look();
    });
  }

  #heard(where: "stdout" | "stderr", text: string): void {
    this[where] += text;
    for (const look of this.#looks) look();
  }
}

export interface Output extends Ended {
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs one command to its end. */
export async function run(
  args: readonly string[],
  options: StartOptions & { readonly input?: string },
): Promise<Output> {
  const started = new Process(args, options);
  started.input(options.input ?? "");
  const ended = await started.ended;
  return { ...ended, stdout: started.stdout, stderr: started.stderr };
}

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Record<string, unknown>;
}

/** A server that answers. */
export class Server {
  constructor(
    readonly process: Process,
    readonly url: string,
  ) {}

  async call(method: string, path: string, body?: unknown): Promise<Reply> {
    const reply = await fetch(this.url + path, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return {
      status: reply.status,
      headers: reply.headers,
      json: (await reply.json()) as Record<string, unknown>,
    };
  }

  /** The id of a job that was accepted. */
  async submit(input: unknown, options: Record<string, unknown> = {}): Promise<string> {
    const { status, json } = await this.call("POST", "/jobs", { task: "act", input, ...options });
    if (status !== 202) throw new Error(`not accepted: ${status} ${JSON.stringify(json)}`);
    return String(json["job_id"]);
  }

  /** Waits until the job's state is one of these, or terminal. */
  async until(jobId: string, ...states: string[]): Promise<Record<string, unknown>> {
    for (;;) {
      const { json } = await this.call("GET", `/jobs/${jobId}`);
      if ([...states, ...TERMINAL].includes(String(json["state"]))) return json;
      await this.call("GET", `/jobs/${jobId}/wait?timeout=5000`);
    }
  }

  /** Waits until the job is terminal. */
  ended(jobId: string): Promise<Record<string, unknown>> {
    return this.until(jobId);
  }
}

const TERMINAL = ["done", "failed", "timeout", "cancelled"];

/** Starts `jobtable serve` with the act task on a free port, and waits for its address. */
export async function serve(args: readonly string[], options: StartOptions): Promise<Server> {
  const started = new Process(["serve", ACT, "--port", "0", ...args], options);
  const [, url = ""] = await started.says(/^jobtable listening on (http:\S+)$/m);
  return new Server(started, url);
}

/** Starts `jobtable worker` with the act task, and waits until it works. */
export async function worker(args: readonly string[], options: StartOptions): Promise<Process> {
  const started = new Process(["worker", ACT, ...args], options);
  await started.says(/^jobtable worker worker-[0-9a-f]{8} ready$/m);
  return started;
}
