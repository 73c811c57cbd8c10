/** What Linux tells of a process. Elsewhere those benchmarks are not run. */
import { existsSync, readFileSync } from "node:fs";
import { Missing } from "./missing.js";

/** Of the scheduler's clock, as all systems that matter have it. */
const TICKS_PER_SECOND = 100;
/** utime and stime in /proc/PID/stat, counted behind the name, which may hold blanks. */
const UTIME = 11;
const STIME = 12;

/** @throws Missing */
export function needProc(): void {
  if (!existsSync("/proc/self/stat")) throw new Missing("Linux: it reads /proc/PID");
}

/** Bytes of memory that the process holds now. */
export function residentBytes(pid: number): number {
  const status = readFileSync(`/proc/${String(pid)}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1_024;
}

/** Seconds of CPU that the process has used, all its threads included. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[UTIME]) + Number(fields[STIME])) / TICKS_PER_SECOND;
}
