/** A process that has started, or the error of the one that could not. */
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";

/** Rejects with what the system said; `spawn` itself throws some of it and emits the rest. */
export async function spawned(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
): Promise<ChildProcess> {
  const child = spawn(file, args, options);
  if (child.pid === undefined) {
    const [error] = (await once(child, "error")) as [Error];
    throw error;
  }
  // Later ones are about signals to a process that has gone.
  child.on("error", () => undefined);
  return child;
}
