/** The two scripts as any POSIX shell runs them; what they do together is in run-steps.test.ts. */
import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable, type Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { GATE, GUARD, MARKER } from "./step-guard.js";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "jobtable-guard-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

interface Piped {
  readonly child: ChildProcess;
  readonly input: Writable;
  readonly output: Readable;
  readonly exit: Promise<unknown[]>;
}

describe.each(["dash", "bash"])("in %s", (shell) => {
  function gate(...argv: string[]): Piped {
    const child = spawn(shell, ["-c", GATE, "sh", ...argv], {
      stdio: ["ignore", "pipe", "inherit", "pipe"],
      env: { PATH: process.env["PATH"] ?? "" },
    });
    const [, output, , input] = child.stdio;
    if (output === null || !(input instanceof Writable)) throw new Error("no pipes");
    return { child, input, output, exit: once(child, "exit") };
  }

  async function guard(marker: string): Promise<Piped & { fifos: string[] }> {
    const fifos = [join(folder, `${marker}.out`), join(folder, `${marker}.err`)];
    const child = spawn(shell, ["-c", GUARD, "guard", `${MARKER}=${marker}`, ...fifos], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    return { child, input: child.stdin, output: child.stdout, exit: once(child, "exit"), fifos };
  }

  /** A process that says when it is up, in a group of its own. */
  async function sleeper(marker: string): Promise<ChildProcess> {
    const child = spawn("sh", ["-c", "echo up; exec sleep 1000"], {
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, [MARKER]: marker },
    });
    await once(child.stdout, "data");
    return child;
  }

  it("the gate becomes the command, without a descriptor or a variable more", async () => {
    const script = `env | grep -c GO; for fd in 3 4 5 6 7 8; do (exec 9>&$fd) 2>/dev/null && echo "$fd"; done; kill -USR1 $$`;
    const { input, output, exit } = gate("sh", "-c", script);
    input.end("\n");
    expect(await Promise.all([text(output), exit])).toEqual(["0\n", [null, "SIGUSR1"]]);
  });

  it("the gate lets nobody through when it closes", async () => {
    const { input, output, exit } = gate("echo", "ran");
    input.end();
    expect(await Promise.all([text(output), exit])).toEqual(["", [1, null]]);
  });

  it("the guard kills the group when its pipe closes, and leaves others alone", async () => {
    const [other, own] = [await sleeper(randomUUID()), await sleeper(randomUUID())];
    try {
      const { input, exit } = await guard(randomUUID());
      input.end(`${String(own.pid)}\n`);
      expect(await once(own, "exit")).toEqual([null, "SIGKILL"]);
      expect(await exit).toEqual([0, null]);
      expect(other.exitCode ?? other.signalCode).toBeNull();
    } finally {
      other.kill("SIGKILL");
    }
  });

  it("the guard kills what carries its marker and left the group, and nothing of a group that has ended", async () => {
    const marker = randomUUID();
    const [other, own] = [await sleeper(randomUUID()), await sleeper(marker)];
    try {
      const { input, exit } = await guard(marker);
      // The group's number is another's by now.
      input.end(`${String(other.pid)}\nended\n`);
      expect(await once(own, "exit")).toEqual([null, "SIGKILL"]);
      expect(await exit).toEqual([0, null]);
      expect(other.exitCode ?? other.signalCode).toBeNull();
    } finally {
      other.kill("SIGKILL");
    }
  });

  it("the guard of a step that never began leaves no FIFO", async () => {
    const { input, exit, fifos } = await guard(randomUUID());
    expect(fifos.map((fifo) => existsSync(fifo))).toEqual([true, true]);
    input.end();
    expect(await exit).toEqual([0, null]);
    expect(fifos.map((fifo) => existsSync(fifo))).toEqual([false, false]);
  });

  it("the guard outlives a hang-up, an interrupt and a polite end", async () => {
    const own = await sleeper(randomUUID());
    const { child, input, exit } = await guard(randomUUID());
    for (const signal of ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM"] as const) child.kill(signal);
    input.end(`${String(own.pid)}\n`);
    expect(await once(own, "exit")).toEqual([null, "SIGKILL"]);
    expect(await exit).toEqual([0, null]);
  });
});
