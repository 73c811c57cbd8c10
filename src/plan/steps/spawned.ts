/** A process that has started, or the error of the one that could not. */
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";

/** More than the pipes of a process take while it is started. */
const DESCRIPTORS = 16;

/** Rejects with what the system said; `spawn` itself throws some of it and emits the rest. */
export async function spawned(
  file: string,
  args: readonly string[],
  options: SpawnOptions,
): Promise<ChildProcess> {
  requireDescriptors();
  const child = spawn(file, args, options);
  if (child.pid === undefined) {
    const [error] = (await once(child, "error")) as [Error];
    throw error;
  }
  // Later ones are about signals to a process that has gone.
  child.on("error", () => undefined);
  return child;
}

/** Node never closes the pipes of a process that it could not start for want of descriptors. */
function requireDescriptors(): void {
  const held: number[] = [];
  try {
    while (held.length < DESCRIPTORS) held.push(openSync("/dev/null", "r"));
  } finally {
    for (const descriptor of held) closeSync(descriptor);
  }
}
