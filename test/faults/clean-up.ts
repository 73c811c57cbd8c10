/** What is open and must be closed when the run is interrupted; otherwise its owner closes it. */

const open = new Set<() => unknown>();

/** @returns forgets it, once its owner has closed it. */
export function atInterrupt(close: () => unknown): () => void {
  open.add(close);
  return () => {
    open.delete(close);
  };
}

/** Closes all of it, the newest first; what can't be closed does not keep the rest open. */
export async function cleanUp(): Promise<void> {
  for (const close of [...open].reverse())
    try {
      await close();
    } catch (error) {
      process.stderr.write(`faults: ${String(error)}\n`);
    }
}
