import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Scratch } from "../../../test/plan/scratch.js";
import { VirtualClock } from "../../../test/virtual-clock.js";
import { checkVersion, Git, OutputTooLarge } from "./git.js";

let scratch: Scratch;
let cwd: string;
beforeEach(() => {
  scratch = new Scratch();
  cwd = scratch.path("at");
  mkdirSync(cwd);
});
afterEach(() => {
  scratch.remove();
});

/** A program that stands in PATH under the name of git. */
function gitThat(script: string): Git & { readonly env: NodeJS.ProcessEnv } {
  const bin = mkdtempSync(scratch.path("bin-"));
  scratch.write(join(bin, "git"), `#!/bin/sh\n${script}\n`, 0o755);
  const path = `${bin}:${scratch.env["PATH"] ?? ""}`;
  const env = { ...scratch.env, PATH: path };
  return Object.assign(new Git({ ...scratch.host, env }), { env });
}

describe("git", () => {
  test("answers, and says no in one line that names the verb", async () => {
    const git = new Git(scratch.host);
    expect(await git.text({ args: ["version"], cwd })).toMatch(/^git version 2/);
    await expect(git.run({ args: ["rev-parse", "--show-toplevel"], cwd })).rejects.toMatchObject({
      code: "git_failed",
      message: expect.stringMatching(
        /^git rev-parse in ".*\/at": fatal: not a git repository.*$/,
      ) as string,
    });
  });

  test("hears no GIT_ variable and speaks no other language", async () => {
    const env = {
      ...scratch.env,
      GIT_DIR: "/nowhere",
      GIT_CONFIG_COUNT: "x",
      LC_ALL: "de_DE.UTF-8",
    };
    const root = scratch.repository("r", { a: "a\n" });
    const git = new Git({ ...scratch.host, env });
    expect(await git.text({ args: ["rev-parse", "--show-toplevel"], cwd: root })).toBe(root);
    const echo = gitThat("env");
    const seen = await echo.text({ args: [], cwd, env: { GIT_DIR: "/here" } });
    expect(seen).toMatch(/^LC_ALL=C$/m);
    expect(seen).toMatch(/^GIT_DIR=\/here$/m);
    expect(seen).toMatch(/^GIT_OPTIONAL_LOCKS=0$/m);
  });

  test("is missing", async () => {
    const git = new Git({ ...scratch.host, env: { PATH: scratch.path("empty") } });
    await expect(checkVersion(git, cwd)).rejects.toMatchObject({
      code: "invalid_workspace",
      message: "git is not installed: no git in PATH",
    });
  });

  test.each([
    ["1.8.5", true],
    ["2.29.9", true],
    ["two", true],
    ["2.30.0", false],
    ["2.39.5 (Apple Git-154)", false],
    ["3.0.1", false],
  ])("of version %s is too old: %s", async (version, tooOld) => {
    const checked = checkVersion(gitThat(`echo git version '${version}'`), cwd);
    const refusal = { code: "invalid_workspace" };
    if (tooOld) await expect(checked).rejects.toMatchObject(refusal);
    else await expect(checked).resolves.toBeUndefined();
  });

  test("answers with no more than the bound, and ends there", async () => {
    const git = gitThat("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done");
    await expect(git.run({ args: [], cwd, maxBytes: 10_000 })).rejects.toThrow(OutputTooLarge);
    await expect(git.records({ args: [], cwd }, () => undefined)).rejects.toThrow(OutputTooLarge);
  });

  test("hands on records as they were, across chunks", async () => {
    // Several times what a pipe holds.
    const git = gitThat(
      String.raw`printf 'a\0b\n\0\377\0'; seq 100000 160000 | tr '\n' '\0'; printf 'unended'`,
    );
    const records: string[] = [];
    await git.records({ args: [], cwd }, (record) => records.push(record.toString("latin1")));
    expect(records.slice(0, 4)).toEqual(["a", "b\n", "\u00ff", "100000"]);
    expect(records.slice(4)).toEqual(Array.from({ length: 60_000 }, (_, i) => String(100_001 + i)));
  });

  test("does not mind that its input is not read", async () => {
    const input = Buffer.alloc(1_000_000);
    expect(await gitThat("exit 3").ask({ args: [], cwd, input })).toMatchObject({ code: 3 });
  });

  test("says when it was killed", async () => {
    await expect(gitThat("kill -9 $$").ask({ args: ["log"], cwd })).rejects.toMatchObject({
      code: "git_failed",
      message: expect.stringContaining("it was ended by SIGKILL") as string,
    });
  });

  test("ends with the signal, and what it started too, though both are deaf", async () => {
    const pids = scratch.path("pids");
    spawnSync("mkfifo", [pids]);
    const clock = new VirtualClock();
    const { env } = gitThat(
      `trap '' TERM; sh -c 'trap "" TERM; echo $$ > ${pids}; exec tail -f /dev/null' & wait`,
    );
    const abort = new AbortController();
    const git = new Git({ env, clock });
    const work = git.run({ args: [], cwd, signal: abort.signal });
    const pid = Number(await readFile(pids, "utf8"));
    const reason = new Error("enough");
    const ended = expect(work).rejects.toBe(reason);
    abort.abort(reason);
    expect(isRunning(pid)).toBe(true);
    await clock.advance(10_000);
    await ended;
    expect(isRunning(pid)).toBe(false);
  });

  test("does not start when the signal is set already", async () => {
    const git = new Git(scratch.host);
    const signal = AbortSignal.abort(new Error("before"));
    await expect(git.run({ args: ["version"], cwd, signal })).rejects.toThrow("before");
  });
});

/** Not ended, waited for by its parent or not. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return stdout.trim() !== "" && !stdout.startsWith("Z");
}
