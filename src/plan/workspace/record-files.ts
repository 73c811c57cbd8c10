/**
 * Takes the files of a folder into an index, as `git add --all` would, but file by file: what can't be
 * part of a plan is seen before git meets it. FIFOs, sockets and devices that git does not know are
 * not seen at all, as in git itself. Names are bytes.
 */
import { lstat } from "node:fs/promises";
import type { Stats } from "node:fs";
import { codeOf } from "../../runtime/error-code.js";
import type { Git } from "../git/git.js";
import { failed } from "../git/git-process.js";
import { inWorkTree, type WorkTree } from "../git/repository.js";

export interface Changes {
  /** Known to the index, and not as it knows them, or not there. No submodules. */
  readonly known: readonly Buffer[];
  /** Not known and not ignored. */
  readonly added: readonly Buffer[];
  /** Folders of repositories of their own that the index does not know. */
  readonly repositories: readonly Buffer[];
}

export async function findChanges(
  git: Git,
  tree: WorkTree,
  signal: AbortSignal | undefined,
): Promise<Changes> {
  const at = { ...inWorkTree(tree), signal };
  const known: Buffer[] = [];
  const args = ["diff-files", "-z", "--name-only", "--no-renames", "--ignore-submodules=all"];
  await git.records({ ...at, args }, (record) => known.push(Buffer.from(record)));
  const added: Buffer[] = [];
  const repositories: Buffer[] = [];
  await git.records(
    { ...at, args: ["ls-files", "-z", "--others", "--exclude-standard"] },
    (record) => {
      // Only a repository is named as a folder; what is in it is its own business.
      if (record.at(-1) === SLASH) repositories.push(Buffer.from(record.subarray(0, -1)));
      else added.push(Buffer.from(record));
    },
  );
  return { known, added, repositories };
}

const SLASH = 0x2f;

/** What an index can take of some paths, and what it can't. */
export interface Sorted {
  readonly files: readonly Buffer[];
  /** Nothing stands there, or a folder in place of a file. */
  readonly gone: readonly Buffer[];
  /** FIFOs, sockets, devices. */
  readonly special: readonly Buffer[];
  /** Of all files. */
  readonly bytes: number;
}

export async function sortByStanding(dir: string, paths: readonly Buffer[]): Promise<Sorted> {
  const files: Buffer[] = [];
  const gone: Buffer[] = [];
  const special: Buffer[] = [];
  let bytes = 0;
  for (const path of paths) {
    const found = await look(Buffer.concat([Buffer.from(`${dir}/`), path]));
    if (found === null || found.isDirectory()) gone.push(path);
    else if (found.isFile() || found.isSymbolicLink()) {
      files.push(path);
      bytes += found.size;
    } else special.push(path);
  }
  return { files, gone, special, bytes };
}

async function look(path: Buffer): Promise<Stats | null> {
  try {
    return await lstat(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return null;
    throw error;
  }
}

/**
 * Records the files as they are, and that the others are gone. Folders above come and go by
 * themselves.
 * @returns what git says of a name that it never takes (such as `git~1`), or null.
 */
export async function record(
  git: Git,
  tree: WorkTree,
  { files, gone }: Pick<Sorted, "files" | "gone">,
  signal: AbortSignal | undefined,
): Promise<string | null> {
  const at = { ...inWorkTree(tree), signal };
  const update = ["update-index", "-z", "--add", "--replace"];
  if (gone.length > 0)
    await git.run({ ...at, args: [...update, "--force-remove", "--stdin"], input: joined(gone) });
  if (files.length === 0) return null;
  const args = [...update, "--remove", "--stdin"];
  const answer = await git.ask({ ...at, args, input: joined(files) });
  if (answer.code !== 0) throw failed({ args, cwd: tree.dir }, answer.stderr);
  return /^Ignoring path .*$/m.exec(answer.stderr)?.[0] ?? null;
}

/** As `--stdin` with `-z` takes them. */
export function joined(paths: readonly Buffer[]): Buffer {
  const nul = Buffer.from([0]);
  return Buffer.concat(paths.flatMap((path) => [path, nul]));
}
