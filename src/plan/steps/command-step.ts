/** A step that runs a command: from what the plan says to a process, and from its end to a record. */
import { newToken } from "../../runtime/random.js";
import type { CommandStep } from "../definition.js";
import type { StartedStep } from "./api.js";
import {
  commandEnvironment,
  DEFAULT_PATH,
  requireProgram,
  workingFolder,
} from "./command-environment.js";
import { runCommand, type CommandEnd } from "./command.js";
import { Evaluation } from "./evaluate.js";
import type { StepEnd, StepsContext } from "./step-end.js";
import { StepLog, type OutputStream } from "./step-log.js";
import { MAX_STDOUT_BYTES } from "./step-outputs.js";
import { StopRequest } from "./stop-request.js";

/** @throws StepFailure where it could not be started. */
export async function runCommandStep(
  step: CommandStep,
  started: StartedStep,
  context: StepsContext,
): Promise<StepEnd> {
  const { clock, signal, outputs, listener, graceMs, scratch } = context;
  const stop = new StopRequest(signal, step.timeoutMs, clock);
  const log = new StepLog();
  const stdout = new FirstBytes(MAX_STDOUT_BYTES);
  const wrote = (stream: OutputStream, bytes: Buffer): void => {
    log.write(stream, bytes);
    if (stream === "stdout" && step.id !== null) stdout.add(bytes);
    listener.stepWrote(started, stream, bytes, log);
  };
  try {
    const command = prepare(step, context);
    const guardPath = context.env["PATH"] ?? DEFAULT_PATH;
    const end = await runCommand({
      ...command,
      scratch,
      guardPath,
      graceMs,
      clock,
      stop,
      wrote,
    });
    outputs.keepCommand(step.id, stdout.all, end);
    return {
      ...stateOf(end, step),
      exitCode: end.exitCode,
      signal: end.signal,
      log: log.end(),
      logBytes: log.bytes,
    };
  } finally {
    stop.release();
  }
}

function prepare(step: CommandStep, context: StepsContext): Prepared {
  const { dir, plan, outputs } = context;
  const evaluation = new Evaluation({ workspace: dir, planName: plan.name, outputs });
  const cwd = workingFolder(dir, evaluation.passable(step.cwd, "cwd"));
  const evaluated = (env: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(env).map(([name, text]) => [name, evaluation.passable(text, name)]),
    );
  const marker = newToken();
  const env = commandEnvironment({
    base: context.env,
    own: [evaluated(plan.env), evaluated(step.env)],
    plan: plan.name,
    phase: plan.phase,
    workspace: dir,
    cwd,
    marker,
  });
  const [program = ""] = step.shell;
  requireProgram(program, env["PATH"] ?? "", cwd);
  return { argv: [...step.shell, step.run], cwd, env, marker };
}

type Prepared = Pick<Parameters<typeof runCommand>[0], "argv" | "cwd" | "env" | "marker">;

function stateOf(end: CommandEnd, { timeoutMs }: CommandStep): StepEnd {
  const { stopped, lost, exitCode, signal } = end;
  const still = lost ? "; one of its processes can't be killed and may still be there" : "";
  if (stopped === "cancelled") return { state: "cancelled" };
  if (stopped === "timed_out")
    return {
      state: "timed_out",
      errorMessage: `TimeLimit: it took longer than its limit of ${timeoutMs ?? 0} ms${still}`,
    };
  if (exitCode === 0) return { state: "succeeded" };
  const how = signal === null ? `exit code ${String(exitCode)}` : `ended by ${signal}`;
  return { state: "failed", errorMessage: `CommandFailed: ${how}` };
}

/** The beginning of a stream that may be of any length. */
class FirstBytes {
  readonly #most: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(chunk: Buffer): void {
    if (this.#bytes <= this.#most) this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Null where it is not all. */
  get all(): Buffer | null {
    return this.#bytes > this.#most ? null : Buffer.concat(this.#chunks);
  }
}
