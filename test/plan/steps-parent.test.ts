/** Steps of a process that is killed with -9, or that has no files left to open. */
import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const script = resolve(import.meta.dirname, "steps-parent.mjs");
const dist = resolve(import.meta.dirname, "../../dist");

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "jobtable-steps-parent-"));
});
afterEach(async () => {
  await rm(folder, { recursive: true });
});

/** Every process of the steps holds this open: its end is the end of all of them. */
interface Lifeline {
  readonly reader: Socket;
  readonly gone: Promise<unknown>;
  drop(): void;
}

function lifeline(): Lifeline {
  const path = join(folder, "alive");
  execFileSync("mkfifo", [path]);
  const fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const holder = openSync(path, constants.O_WRONLY);
  const reader = new Socket({ fd, readable: true, writable: false });
  return { reader, gone: once(reader, "end"), drop: () => closeSync(holder) };
}

function parent(steps: readonly object[]): ChildProcess {
  const args = [script, dist, "run", folder, JSON.stringify(steps)];
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
}

const UP = 'exec 9> "$JOBTABLE_WORKSPACE/alive"; ';

describe("steps whose process is killed", () => {
  it.each([
    ["in the group", `${UP} sleep 1000 & (trap '' TERM HUP; sleep 1000) & echo up >&9; sleep 1000`],
    ["in sessions of their own", `${UP} setsid sh -c 'echo up >&9; sleep 1000; :' & sleep 1000`],
    [
      "told to stop, and deaf",
      `${UP} trap 'echo up >&9' TERM; while :; do sleep 1 & wait $!; done`,
    ],
  ])("die at once: %s", async (_, run) => {
    const alive = lifeline();
    const child = parent([{ run, timeout: "1s" }]);
    await once(alive.reader, "data");
    alive.drop();
    child.kill("SIGKILL");
    await alive.gone;
  });

  it("die at once, wherever it is between one and the next", async () => {
    const steps = Array.from({ length: 40 }, () => ({ run: `${UP} sleep 1000 & echo >&9` }));
    const alive = lifeline();
    for (const ended of [0, 3]) {
      const child = parent(steps);
      const exit = once(child, "exit");
      if (child.stdout === null) throw new Error("no output");
      let lines = 0;
      createInterface({ input: child.stdout }).on("line", () => {
        lines += 1;
        if (lines > ended) child.kill("SIGKILL");
      });
      expect(await exit).toEqual([null, "SIGKILL"]);
    }
    alive.reader.resume();
    alive.drop();
    await alive.gone;
  });
});

it("steps fail by themselves where no file can be opened, and leave nothing open", async () => {
  const steps = JSON.stringify([{ run: "echo" }]);
  const command = `ulimit -n 512; exec "$0" "$@"`;
  const args = ["-c", command, process.execPath, script, dist, "crowded", folder, steps];
  const lines = execFileSync("sh", args, { encoding: "utf8" }).trim().split("\n");
  const said = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(said[0]).toEqual({ full: "EMFILE" });
  expect(said.at(-1)).toEqual({ leaked: 0 });
  const ends = said.slice(1, -1);
  const states = ends.map(({ state }) => state);
  const firstGood = states.indexOf("succeeded");
  expect(firstGood).toBeGreaterThan(3);
  expect(states.slice(firstGood)).toEqual(Array(28 - firstGood).fill("succeeded"));
  for (const { state, errorMessage } of ends.slice(0, firstGood))
    expect([state, errorMessage]).toEqual([
      "failed",
      expect.stringMatching(/^SpawnFailed: .* can't be started: .*(EMFILE|Too many open files)/),
    ]);
  expect(await readdir(join(folder, "scratch"))).toEqual([]);
});
