/** Removes folders of our own making, whatever a step left in them. */
import { chmod, lstat, readdir, rm } from "node:fs/promises";
import { codeOf } from "../../runtime/error-code.js";

/** A program that still runs may add files meanwhile: the folder is found not empty, and tried again. */
const OPTIONS = { recursive: true, force: true, maxRetries: 5, retryDelay: 50 } as const;

/** Links are removed, never followed. Nothing there is fine. */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, OPTIONS);
  } catch (error) {
    const code = codeOf(error);
    if (code !== "EACCES" && code !== "EPERM") throw error;
    // What lies in a folder without write permission can't be removed, so each is given it.
    await openFolders(Buffer.from(path));
    await rm(path, OPTIONS);
  }
}

async function openFolders(path: Buffer): Promise<void> {
  const found = await lstat(path);
  if (!found.isDirectory()) return;
  await chmod(path, 0o700);
  for (const name of await readdir(path, { encoding: "buffer" }))
    await openFolders(Buffer.concat([path, SLASH, name]));
}

const SLASH = Buffer.from("/");
