import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { processesAt, systemProcesses } from "./process-identity.js";

const { self, isGone, isRunning } = systemProcesses();

function endedPid(): number {
  return spawnSync(process.execPath, ["-e", ""]).pid;
}

function stampOf(pid: number): string {
  if (self.pidStamp === "") return "";
  return readFileSync(`/proc/${String(pid)}/stat`, "utf8").split(" ")[21] ?? "";
}

describe("processes", () => {
  test("know themselves, and are alive", () => {
    expect(self.pid).toBe(process.pid);
    expect(self.host).not.toBe("");
    expect(isGone(self)).toBe(false);
    expect(isRunning(self)).toBe(self.pidStamp !== "");
    expect(systemProcesses().self).toEqual(self);
  });

  test("are gone when they have ended", () => {
    const other = { ...self, pid: endedPid() };
    expect(isGone(other)).toBe(true);
    expect(isRunning(other)).toBe(false);
  });

  test("are gone when their pid is another process's now", () => {
    const other = { ...self, pidStamp: `${self.pidStamp}0` };
    expect(self.pidStamp === "" || isGone(other)).toBe(self.pidStamp !== "");
    expect(isRunning(other)).toBe(false);
    expect(isGone({ ...self, pidStamp: "" })).toBe(false);
    expect(isRunning({ ...self, pidStamp: "" })).toBe(false);
  });

  test("are gone when they have ended and their parent never asks", async () => {
    const parent = spawn("sh", ["-c", "sleep 0 & echo $!; exec sleep 60"]);
    try {
      const [pid] = (await once(parent.stdout, "data")).map(Number);
      const zombie = { ...self, pid: pid ?? 0, pidStamp: stampOf(pid ?? 0) };
      await expect.poll(() => isGone(zombie)).toBe(self.pidStamp !== "");
      expect(isRunning(zombie)).toBe(false);
    } finally {
      parent.kill("SIGKILL");
    }
  });

  test("of other hosts are never known to be gone, nor to run", () => {
    const other = { ...self, host: `x${self.host}` };
    expect(isGone({ ...other, pid: endedPid() })).toBe(false);
    expect(isRunning(other)).toBe(false);
  });

  test("of other users live", () => {
    // pid 1 always runs, and signals to it are refused or ignored.
    expect(isGone({ ...self, pid: 1, pidStamp: "" })).toBe(false);
  });
});

const MACHINE = "0123456789abcdef0123456789abcdef";
const ROOT = "pid:[4026531836]";

/** How a live process of one host stands, to one that looks from another. */
function restartedFrom(here: string, there: string): boolean {
  return processesAt({ ...self, host: here }).wasRestarted({ ...self, host: there });
}

describe("a process of before a restart", () => {
  test("is known by the machine; on another disk it may be a clone's, and is not gone for certain", () => {
    const here = `m/boot2/${ROOT}/${MACHINE}`;
    const there = `m/boot1/${ROOT}/${MACHINE}`;
    expect(restartedFrom(here, there)).toBe(true);
    expect(processesAt({ ...self, host: here }).isGone({ ...self, host: there })).toBe(false);
  });

  test.each([
    ["another machine", `m/boot1/${ROOT}/f${MACHINE.slice(1)}`],
    ["another name", `n/boot1/${ROOT}/${MACHINE}`],
    ["an older version's", `m/boot1/${ROOT}`],
    ["no boot", `m//${ROOT}/${MACHINE}`],
    // Of the same image, and maybe on another machine.
    ["a container", `m/boot1/pid:[4026532000]/${MACHINE}`],
  ])("is not known to be one: %s", (_, there) => {
    expect(restartedFrom(`m/boot2/${ROOT}/${MACHINE}`, there)).toBe(false);
  });

  test("is not known to be one by who does not know its own boot, machine, or is in a container", () => {
    for (const here of [
      `m//${ROOT}/${MACHINE}`,
      `m/boot2/${ROOT}/`,
      `m/boot2/pid:[4026532000]/${MACHINE}`,
    ])
      expect(restartedFrom(here, `m/boot1/${ROOT}/${MACHINE}`)).toBe(false);
    const container = `pid:[4026532000]/${MACHINE}`;
    expect(restartedFrom(`m/boot2/${container}`, `m/boot1/${container}`)).toBe(false);
  });
});

test("where no boot is known a pid tells nothing: the name may be another machine's too", () => {
  const { isGone } = processesAt({ ...self, host: "mac//" });
  expect(isGone({ host: "mac//", pid: endedPid(), pidStamp: "" })).toBe(false);
});

test("an identity of an older version of the same boot is known", () => {
  const old = self.host.split("/").slice(0, 3).join("/");
  const hasBoot = self.host.split("/")[1] !== "";
  expect(isGone({ ...self, host: old, pid: endedPid() })).toBe(hasBoot);
});
