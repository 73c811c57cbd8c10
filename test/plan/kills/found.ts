/** What is there after a kill, and ought to be, or not. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Of each path what stands there. */
export type View = Readonly<Record<string, string>>;

/** Sandboxes and other temporary files of the dead. */
export function temporaryFiles(tmp: string): string[] {
  const own = `jobtable-${String(process.geteuid?.())}`;
  return ["", own, `${own}/sandboxes`]
    .filter((folder) => existsSync(join(tmp, folder)))
    .flatMap((folder) => readdirSync(join(tmp, folder)))
    .filter((name) => name !== own && name !== "sandboxes");
}

/** Up to three lines. */
export function differences(expected: View, now: View): string[] {
  const paths = new Set([...Object.keys(expected), ...Object.keys(now)]);
  return [...paths]
    .filter((path) => expected[path] !== now[path])
    .slice(0, 3)
    .map((path) => `${path}: expected ${String(expected[path])}, found ${String(now[path])}`);
}

/** Of steps of this plan; on Linux. */
export function stepProcesses(plan: string): string[] {
  const mark = `JOBTABLE_PLAN=${plan}\0`;
  return (existsSync("/proc/self/environ") ? readdirSync("/proc") : []).filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").includes(mark);
    } catch {
      return false;
    }
  });
}
