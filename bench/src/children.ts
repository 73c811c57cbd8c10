/** No process that a run started outlives it, however it ends. */
import type { ChildProcess } from "node:child_process";

const alive = new Map<ChildProcess, NodeJS.Signals>();

process.once("exit", () => {
  for (const [child, signal] of alive) child.kill(signal);
});

/** @param signal ends it in order. */
export function track<Child extends ChildProcess>(child: Child, signal: NodeJS.Signals): Child {
  alive.set(child, signal);
  child.once("exit", () => alive.delete(child));
  return child;
}
