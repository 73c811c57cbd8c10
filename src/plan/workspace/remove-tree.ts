/** Removes folders of our own making, whatever a step left in them. */
import { chmod, lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** A program that still runs may add files meanwhile: the folder is found not empty, and tried again. */
const OPTIONS = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const;

/** Links are removed, never followed. Nothing there is fine. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, OPTIONS);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : "";
    if (code !== "EACCES" && code !== "EPERM") throw error;
    // What lies in a folder without write permission can't be removed, so each is given it.
    await openFolders(path);
    await rm(path, OPTIONS);
  }
}

async function openFolders(path: string): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory()) return;
  await chmod(path, 0o700);
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await openFolders(join(path, entry.name));
}
