import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { systemProcesses } from "./process-identity.js";

const { self, isGone } = systemProcesses();

describe("processes", () => {
  test("know themselves, and are alive", () => {
    expect(self.pid).toBe(process.pid);
    expect(self.host).not.toBe("");
    expect(isGone(self)).toBe(false);
    expect(systemProcesses().self).toEqual(self);
  });

  test("are gone when they have ended", () => {
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    expect(isGone({ ...self, pid })).toBe(true);
  });

  test("are gone when their pid is another process's now", () => {
    expect(self.pidStamp === "" || isGone({ ...self, pidStamp: `${self.pidStamp}0` })).toBe(
      self.pidStamp !== "",
    );
    expect(isGone({ ...self, pidStamp: "" })).toBe(false);
  });

  test("of other hosts are never known to be gone", () => {
    const { pid } = spawnSync(process.execPath, ["-e", ""]);
    expect(isGone({ ...self, pid, host: `${self.host}x` })).toBe(false);
  });

  test("of other users live", () => {
    // pid 1 always runs, and signals to it are refused or ignored.
    expect(isGone({ ...self, pid: 1, pidStamp: "" })).toBe(false);
  });
});
