/** What SQLite's write-ahead log says of the commits in it (https://sqlite.org/fileformat2.html#the_write_ahead_log). */
import { readFileSync } from "node:fs";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_AT = 8;
/** Zero in all frames but the last of a commit, where it is the size of the database. */
const COMMIT_SIZE_AT = 4;

/** How many commits the log holds. It starts anew after a checkpoint: compare within a short test only. */
export function commitsInLog(databasePath: string): number {
  const log = readFileSync(`${databasePath}-wal`);
  if (log.length < HEADER_BYTES) return 0;
  const frameBytes = FRAME_HEADER_BYTES + log.readUInt32BE(PAGE_SIZE_AT);
  let commits = 0;
  for (let at = HEADER_BYTES; at + frameBytes <= log.length; at += frameBytes)
    if (log.readUInt32BE(at + COMMIT_SIZE_AT) !== 0) commits += 1;
  return commits;
}
