/**
 * Who this process is, and whether another one of the same host is gone for certain. "Certain" is
 * what matters: a process that is wrongly taken for gone loses its jobs. Where the system can't tell,
 * the answer is that it lives, and its silence will tell later.
 *
 * A host is named by its name, its boot and its process namespace: pids mean something only within
 * these. A pid is used again after a while, so it comes with a stamp, the time that the kernel
 * started it (field 22 of /proc/<pid>/stat, see proc_pid_stat(5)). Outside Linux boot, namespace and
 * stamp are empty.
 */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** Empty where the system can't tell. */
  readonly pidStamp: string;
}

/** Looks at processes; tests pass their own. */
export interface Processes {
  readonly self: ProcessIdentity;
  /** Whether a process of this host has ended. False for one of another host. */
  readonly isGone: (other: ProcessIdentity) => boolean;
}

export function systemProcesses(): Processes {
  const self: ProcessIdentity = {
    host: [hostname(), bootId(), pidNamespace()].join("/"),
    pid: process.pid,
    pidStamp: pidStamp(process.pid),
  };
  return {
    self,
    isGone(other) {
      if (other.host !== self.host) return false;
      if (!isAlive(other.pid)) return true;
      const stamp = pidStamp(other.pid);
      return stamp !== "" && other.pidStamp !== "" && stamp !== other.pidStamp;
    },
  };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives, and belongs to someone else.
    return !(error instanceof Error && "code" in error && error.code === "ESRCH");
  }
}

function bootId(): string {
  return attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
}

function pidNamespace(): string {
  return attempt(() => readlinkSync("/proc/self/ns/pid"));
}

/** Field 22; the name in field 2 may contain blanks and brackets, so the count starts after the last bracket. */
function pidStamp(pid: number): string {
  return attempt(() => {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[22 - 3] ?? "";
  });
}

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
