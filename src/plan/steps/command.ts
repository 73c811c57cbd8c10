/**
 * One command from its start to the end of all that it started. It runs in a process group of its
 * own, and its output is read as fast as it comes, whoever looks at it.
 *
 * When its own process has ended, the group is killed. When it has to stop, the group gets TERM; the
 * others of the group then keep the rest of the grace, as long as one of them holds the output open,
 * and whatever is there after the grace is killed. Output is read until nobody can write any more.
 */
import type { ChildProcess } from "node:child_process";
import { Writable } from "node:stream";
import type { Clock } from "../../runtime/clock.js";
import { within } from "../../runtime/within.js";
import { codeOf } from "../../runtime/error-code.js";
import type { Environment } from "./command-environment.js";
import { OutputPipe } from "./output-pipe.js";
import { spawned } from "./spawned.js";
import { spawnFailure, StepFailure } from "./step-failure.js";
import { GATE, SH, StepGuard } from "./step-guard.js";
import type { OutputStream } from "./step-log.js";
import type { CommandExit } from "./step-outputs.js";
import type { StopReason, StopRequest } from "./stop-request.js";

/** For what the kernel still has in hand of processes that were killed. */
const LAST_OUTPUT_MS = 2_000;
/** A process that does not end from SIGKILL waits for a disk or a network drive. */
const UNKILLABLE_MS = 10_000;

export interface CommandSpec {
  /** The shell with its arguments, and the command. */
  readonly argv: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  readonly env: Environment;
  /** As in the environment. */
  readonly marker: string;
  /** A folder for what is gone again when the command begins. */
  readonly scratch: string;
  /** `PATH` of the worker: the command's own may lack what its guard needs. */
  readonly guardPath: string;
  readonly graceMs: number;
  readonly clock: Clock;
  readonly stop: StopRequest;
  readonly wrote: (stream: OutputStream, bytes: Buffer) => void;
}

export interface CommandEnd extends CommandExit {
  /** Null where it ended by itself. */
  readonly stopped: StopReason | null;
  /** Its process could not be killed, and may still be there. */
  readonly lost: boolean;
}

/** @throws StepFailure where it could not be started. */
export async function runCommand(spec: CommandSpec): Promise<CommandEnd> {
  const { clock, marker, scratch, guardPath } = spec;
  const guard = await StepGuard.start({ marker, scratch, path: guardPath }, clock);
  const pipes: OutputPipe[] = [];
  try {
    pipes.push(new OutputPipe(guard.fifos.out, (bytes) => spec.wrote("stdout", bytes)));
    pipes.push(new OutputPipe(guard.fifos.err, (bytes) => spec.wrote("stderr", bytes)));
    const child = await start(spec, pipes);
    const ended = Promise.all(pipes.map((pipe) => pipe.ended));
    const end = await supervise(child, guard, ended, spec);
    await guard.sweep(clock);
    await within(clock, LAST_OUTPUT_MS, ended, () => undefined);
    return end;
  } catch (error) {
    guard.dismiss();
    throw error instanceof StepFailure ? error : spawnFailure("the command", error);
  } finally {
    for (const pipe of pipes) pipe.destroy();
  }
}

async function start(
  { argv, cwd, env }: CommandSpec,
  pipes: readonly OutputPipe[],
): Promise<ChildProcess> {
  const stdio = ["ignore", ...pipes.map((pipe) => pipe.writer), "pipe"] as const;
  try {
    return await spawned(SH, ["-c", GATE, "jobtable-step", ...argv], {
      cwd,
      env,
      detached: true,
      stdio: [...stdio],
    });
  } catch (error) {
    throw codeOf(error) === "E2BIG" ? tooLarge(env) : spawnFailure("the command", error);
  } finally {
    for (const pipe of pipes) pipe.closeWriter();
  }
}

/** Opens the gate, and resolves when the command has ended and its group is killed. */
async function supervise(
  child: ChildProcess,
  guard: StepGuard,
  outputEnded: Promise<unknown>,
  { clock, graceMs, stop }: CommandSpec,
): Promise<CommandEnd> {
  const { pid } = child;
  if (pid === undefined) throw new Error("the command has no process");
  const group = new ProcessGroup(pid, graceMs, clock);
  const exited = new Promise<CommandExit>((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
  });
  stop.onStop(() => group.stop());
  try {
    await guard.watch(pid);
    openGate(child);
    const exit = await Promise.race([exited, group.unkillable]);
    const stopped = stop.reason;
    if (stopped !== null) await Promise.race([outputEnded, group.graceOver]);
    return exit === "unkillable"
      ? { exitCode: null, signal: null, stopped, lost: true }
      : { ...exit, stopped, lost: false };
  } finally {
    group.end();
  }
}

function openGate({ stdio: [, , , gate] }: ChildProcess): void {
  if (!(gate instanceof Writable)) throw new Error("the command has no gate");
  // It may be gone already, when it had to stop at once.
  gate.on("error", () => undefined);
  gate.end("\n");
}

/** The processes of a command, as far as they stayed in its group. */
class ProcessGroup {
  readonly graceOver: Promise<void>;
  readonly unkillable: Promise<"unkillable">;
  readonly #id: number;
  readonly #graceMs: number;
  readonly #clock: Clock;
  #endGrace: () => void = () => undefined;
  #giveUp: () => void = () => undefined;
  #cancelTimer: () => void = () => undefined;
  #over = false;

  constructor(id: number, graceMs: number, clock: Clock) {
    this.#id = id;
    this.#graceMs = graceMs;
    this.#clock = clock;
    this.graceOver = new Promise((resolve) => (this.#endGrace = resolve));
    this.unkillable = new Promise((resolve) => (this.#giveUp = () => resolve("unkillable")));
  }

  stop(): void {
    if (this.#over) return;
    this.#signal("SIGTERM");
    this.#cancelTimer = this.#clock.timer(this.#graceMs, () => {
      this.#signal("SIGKILL");
      this.#endGrace();
      this.#cancelTimer = this.#clock.timer(UNKILLABLE_MS, this.#giveUp);
    });
  }

  /** Kills what is left. Afterwards its number may be another's. */
  end(): void {
    if (!this.#over) this.#signal("SIGKILL");
    this.#over = true;
    this.#cancelTimer();
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.#id, signal);
    } catch {
      // All of it has gone, or is another user's.
    }
  }
}

/** What Linux takes as one text is bounded, and so is all of it together. */
function tooLarge(env: Environment): StepFailure {
  const sizes = Object.entries(env).map(([name, value]) => ({
    name,
    bytes: Buffer.byteLength(value),
  }));
  const largest = sizes.reduce((one, other) => (other.bytes > one.bytes ? other : one));
  return new StepFailure(
    "SpawnFailed",
    `the command and its variables are more than the system takes (E2BIG); the largest is ${largest.name} with ${largest.bytes} bytes: pass it by a file`,
  );
}
