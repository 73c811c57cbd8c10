/**
 * Who this process is, and whether another one is gone for certain. "Certain" is what matters: a process
 * that is wrongly taken for gone loses its jobs. Where the system can't tell, the answer is that it
 * lives, and its silence will tell later.
 *
 * A host is named by its name, its boot, its process namespace and its machine id: pids mean something
 * only within one boot and namespace. A pid is used again after a while, so it comes with a stamp, the
 * time that the kernel started it (field 22 of /proc/<pid>/stat, see proc_pid_stat(5)). One that has ended
 * and whose parent never asked (state Z there, as in a container without an init) is gone. What a system
 * does not have is empty; an older version wrote no machine id.
 *
 * - Same name, boot and namespace: the pid and its stamp tell.
 * - Same name and machine id, another boot: the machine was restarted, and all from before are gone. Only
 *   outside of containers: two of one image may share a machine id, and be on two machines. So may two
 *   virtual machines that were cloned: it holds of what was written on a disk of this machine alone.
 * - Anything else, or no boot known: nobody can tell.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export interface ProcessIdentity {
  /** `name/boot/namespace/machine`. */
  readonly host: string;
  readonly pid: number;
  /** Empty where the system can't tell. */
  readonly pidStamp: string;
}

/** Looks at processes; tests pass their own. */
export interface Processes {
  readonly self: ProcessIdentity;
  /** Whether a process has ended for certain. */
  readonly isGone: (other: ProcessIdentity) => boolean;
  /** Whether it ran before this machine was restarted; only of one that is known to have run on it. */
  readonly wasRestarted: (other: ProcessIdentity) => boolean;
  /** Whether a process runs for certain. Of many neither holds. */
  readonly isRunning: (other: ProcessIdentity) => boolean;
}

export function systemProcesses(): Processes {
  const boot = process.platform === "darwin" ? bootOfMac() : bootOfLinux();
  const host = [hostname(), boot.boot, boot.namespace, boot.machine].join("/");
  return processesAt({ host, pid: process.pid, pidStamp: lookAt(process.pid).stamp });
}

/** As a process of this identity sees others; its pids are those of this system. */
export function processesAt(self: ProcessIdentity): Processes {
  const here = placeOf(self);
  return {
    self,
    isGone(other) {
      if (!isSameBoot(placeOf(other), here)) return false;
      const { hasEnded, stamp } = lookAt(other.pid);
      if (hasEnded) return true;
      return stamp !== "" && other.pidStamp !== "" && stamp !== other.pidStamp;
    },
    wasRestarted: (other) => wasRestarted(placeOf(other), here),
    isRunning(other) {
      if (!isSameBoot(placeOf(other), here) || other.pidStamp === "") return false;
      const { hasEnded, stamp } = lookAt(other.pid);
      return !hasEnded && stamp === other.pidStamp;
    },
  };
}

interface Boot {
  readonly boot: string;
  readonly namespace: string;
  readonly machine: string;
}

interface Place extends Boot {
  readonly name: string;
}

/** That of the machine itself: PROC_PID_INIT_INO of the kernel. */
const NO_CONTAINER = "pid:[4026531836]";

function placeOf({ host }: ProcessIdentity): Place {
  const [name = "", boot = "", namespace = "", machine = ""] = host.split("/");
  return { name, boot, namespace, machine };
}

function isSameBoot(a: Place, b: Place): boolean {
  return a.boot !== "" && a.name === b.name && a.boot === b.boot && a.namespace === b.namespace;
}

function wasRestarted(there: Place, here: Place): boolean {
  if (there.boot === "" || here.boot === "" || there.boot === here.boot) return false;
  if (there.machine === "" || there.machine !== here.machine || there.name !== here.name)
    return false;
  return there.namespace === NO_CONTAINER && here.namespace === NO_CONTAINER;
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

function bootOfLinux(): Boot {
  return {
    boot: attempt(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    namespace: attempt(() => readlinkSync("/proc/self/ns/pid")),
    machine: machineId("/etc/machine-id") || machineId("/var/lib/dbus/machine-id"),
  };
}

/** See machine-id(5); an image may hold `uninitialized` in its place. */
function machineId(file: string): string {
  const text = attempt(() => readFileSync(file, "utf8").trim());
  return /^[0-9a-f]{32}$/.test(text) ? text : "";
}

/** It has no file with an id of the machine. */
function bootOfMac(): Boot {
  const call = ["-n", "kern.bootsessionuuid"];
  const { stdout } = spawnSync("/usr/sbin/sysctl", call, { encoding: "utf8" });
  return { boot: /^[\w-]{36}$/m.exec(stdout)?.[0] ?? "", namespace: "", machine: "" };
}

interface Look {
  readonly hasEnded: boolean;
  readonly stamp: string;
}

/** Fields 3 and 22; the name in field 2 may contain blanks and brackets, so the count starts after the last bracket. */
function lookAt(pid: number): Look {
  const stat = attempt(() => readFileSync(`/proc/${String(pid)}/stat`, "utf8"));
  if (stat === "") return { hasEnded: !isAlive(pid), stamp: "" };
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { hasEnded: /^[ZXx]$/.test(fields[0] ?? ""), stamp: fields[22 - 3] ?? "" };
}

function attempt(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
