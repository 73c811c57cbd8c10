/**
 * Sees to it that nothing of a command outlives its step, also when this process is killed with -9.
 *
 * The guard is a small `sh` beside the command, in a session of its own, that reads from a pipe which
 * only this process holds open. When the pipe closes without a word, this process is gone: the guard
 * kills the command's process group. In any case it then kills, on Linux, every process that left the
 * group and still carries the step's marker in its environment.
 *
 * The command can't get past it: it waits behind a gate (`GATE`, another pipe) until the guard knows
 * its group, and goes away if the gate closes instead. The gate is replaced by the command (`exec`),
 * so that its process is ours: exit code and signal are its own, and no other process is in its way.
 * It passes on what a POSIX shell passes on: variables whose names are none in sh may get lost.
 *
 * What isn't reached: a process that left its group elsewhere than on Linux, or that has thrown the
 * marker away as well; one of another user (sudo), which nobody else may kill; and what a guard would
 * have found that was itself killed.
 *
 * The guard also makes the two FIFOs for the command's output (output-pipe.ts), since it is there.
 */
import type { ChildProcess } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { Clock } from "../../runtime/clock.js";
import { within } from "../../runtime/within.js";
import type { Fifos } from "./output-pipe.js";
import { spawned } from "./spawned.js";
import { spawnFailure } from "./step-failure.js";

export const SH = "/bin/sh";
export const MARKER = "JOBTABLE_STEP";

/** As the descriptor 3 of the command's process; it is closed before the command begins. */
export const GATE = `read -r JOBTABLE_GO <&3 || exit 1
unset JOBTABLE_GO
exec 3<&-
exec "$@"`;

/**
 * Arguments: the marker as NAME=value, and the paths of the FIFOs. Standard input: the command's group,
 * then a line when that was killed. Each round of the sweep may find what was started during the one
 * before; a process that can't be killed must not keep it going for ever.
 */
export const GUARD = `trap '' HUP INT QUIT TERM PIPE
mkfifo -m 600 "$2" "$3" || exit 1
echo ready
if ! read -r group; then
  rm -f "$2" "$3"
  exit 0
fi
read -r ended || kill -s KILL -- "-$group" 2>/dev/null
round=0
while [ "$round" -lt 50 ]; do
  found=$(grep -lsF -- "$1" /proc/[0-9]*/environ)
  [ -n "$found" ] || exit 0
  for environ in $found; do
    pid=\${environ#/proc/}
    kill -s KILL "\${pid%/environ}" 2>/dev/null
  done
  round=$((round + 1))
done`;

/** The sweep reads a few hundred small files; this is for a machine that hardly moves. */
const MOST_MS = 10_000;
const MAX_COMPLAINT_CHARS = 500;

export class StepGuard {
  /** Where the command's output goes: paths of FIFOs, to be opened and removed at once. */
  readonly fifos: Fifos;
  readonly #process: ChildProcess;
  readonly #input: Writable;
  readonly #gone: Promise<unknown>;

  private constructor(process: ChildProcess, input: Writable, fifos: Fifos) {
    this.#process = process;
    this.#input = input;
    this.fifos = fifos;
    this.#gone = new Promise((resolve) => process.once("exit", resolve));
    input.on("error", () => undefined);
  }

  /**
   * @param marker unique on this machine; letters, digits and dashes.
   * @param scratch an existing folder that may be written.
   * @param path `PATH`, to find mkfifo and grep by.
   * @throws StepFailure
   */
  static async start(
    { marker, scratch, path }: { marker: string; scratch: string; path: string },
    clock: Clock,
  ): Promise<StepGuard> {
    const fifos = { out: join(scratch, `${marker}.out`), err: join(scratch, `${marker}.err`) };
    const args = ["-c", GUARD, "jobtable-guard", `${MARKER}=${marker}`, fifos.out, fifos.err];
    try {
      const process = await spawned(SH, args, { cwd: "/", env: { PATH: path }, detached: true });
      const { stdin, stdout, stderr } = process;
      if (stdin === null || stdout === null || stderr === null) throw new Error("no pipes");
      const guard = new StepGuard(process, stdin, fifos);
      const late = (): Promise<never> => Promise.reject(new Error("it does not answer"));
      await within(clock, MOST_MS, ready(process, stdout, stderr), late).catch((error: unknown) => {
        guard.dismiss();
        throw error;
      });
      return guard;
    } catch (error) {
      throw spawnFailure("the guard of the step", error);
    }
  }

  /** Resolves once the guard will know of the group whatever happens to this process. Rejects where it has gone. */
  watch(group: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#input.write(`${group}\n`, (error) => {
        if (error) reject(new Error("its guard has gone", { cause: error }));
        else resolve();
      });
    });
  }

  /** To be called when the group was killed: resolves once those that left it are killed as well. */
  async sweep(clock: Clock): Promise<void> {
    this.#input.end("ended\n");
    await within(clock, MOST_MS, this.#gone, () => this.#process.kill("SIGKILL"));
  }

  /** For a step that never began. */
  dismiss(): void {
    this.#process.kill("SIGKILL");
    for (const fifo of [this.fifos.out, this.fifos.err]) rmSync(fifo, { force: true });
  }
}

/** Resolves when the guard has made the FIFOs. */
function ready(process: ChildProcess, stdout: Readable, stderr: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    let complaint = "";
    stderr.on("data", (chunk: Buffer) => {
      complaint = (complaint + chunk.toString()).slice(0, MAX_COMPLAINT_CHARS);
    });
    stdout.once("data", () => resolve());
    process.once("close", (code) => {
      const [said = ""] = complaint.trim().split("\n", 1);
      reject(new Error(said === "" ? `it ended with ${String(code)}` : said));
    });
  });
}
