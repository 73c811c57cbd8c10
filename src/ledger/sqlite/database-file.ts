/**
 * Makes sure that a database file can be opened and written where a path says, before a thread is
 * started for it: SQLite's own words for what is wrong here would help nobody.
 */
import { access, constants, mkdir, stat } from "node:fs/promises";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { LedgerError } from "../../job/errors.js";
import { missingLedger } from "../sql/migrations.js";

/**
 * @param create makes the folder of the file when it is missing; false: the file must be there.
 * @throws LedgerError when the folder can't be made, or the file is a folder or can't be written.
 */
export async function prepareFile(path: string, create: boolean): Promise<void> {
  const unavailable = (why: string, cause?: unknown): LedgerError =>
    new LedgerError("ledger_unavailable", `the ledger ${path} can't be opened: ${why}`, { cause });
  const folder = dirname(path);
  if (!create && !existsSync(path)) throw missingLedger(`ledger in ${path}`);
  try {
    await makeFolder(folder);
  } catch (error) {
    throw unavailable(
      `its folder can't be made (${String(error)}): name a file in a folder that can be written`,
      error,
    );
  }
  const found = await stat(path).catch(() => null);
  if (found?.isDirectory() === true) throw unavailable("it is a folder: name a file in it");
  try {
    if (found !== null) await access(path, constants.R_OK | constants.W_OK);
    // The write-ahead log stands beside the file.
    await access(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw unavailable(
      `it and its folder must be writable (${String(error)}): check permissions, or name another file`,
      error,
    );
  }
}

/** Node's own recursive mkdir never ends where a folder answers ENOENT to it, as those of /proc do. */
async function makeFolder(folder: string): Promise<void> {
  if (await isFolder(folder)) return;
  const parent = dirname(folder);
  if (parent !== folder) await makeFolder(parent);
  try {
    await mkdir(folder);
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!(await isFolder(folder))) throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  return found?.isDirectory() === true;
}
