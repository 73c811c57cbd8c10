/**
 * The file port of applying: every look at a file and every change goes through it, one operation a
 * call, none of which follows a link at the end of its path. Tests stop a process between any two.
 */
import { createHash } from "node:crypto";
import { constants, type Stats } from "node:fs";
import {
  chmod,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  readlink,
  rename,
  rmdir,
  symlink,
  unlink,
  utimes,
  type FileHandle,
} from "node:fs/promises";
import { codeOf, orNull } from "../../runtime/error-code.js";
import { removeTree } from "../workspace/remove-tree.js";

/** What a file was found to be while it was read. */
export interface FileFacts {
  /** The permission bits, 0 to 0o7777. */
  readonly mode: number;
  readonly bytes: number;
  /** SHA-256, hexadecimal. */
  readonly hash: string;
  readonly mtimeMs: number;
}

export interface Files {
  /** Null: nothing stands there. */
  readonly stat: (path: string) => Promise<Stats | null>;
  readonly readLink: (path: string) => Promise<Buffer>;
  /** Of a folder. */
  readonly list: (path: string) => Promise<string[]>;
  /** A small file of ours; null: nothing stands there. */
  readonly read: (path: string) => Promise<string | null>;
  readonly facts: (path: string) => Promise<FileFacts>;

  /** Content and mode; nothing may stand at `to`. */
  readonly copy: (from: string, to: string) => Promise<FileFacts>;
  /** A second name for a file, or a copy where there is no such thing; nothing may stand at `to`. */
  readonly addName: (file: string, to: string) => Promise<void>;
  /** Nothing may stand there. It is on disk when this is done. */
  readonly write: (path: string, text: string) => Promise<void>;
  readonly makeLink: (path: string, target: string) => Promise<void>;
  /** The one above must be there, this one not. */
  readonly makeFolder: (path: string, mode?: number) => Promise<void>;
  readonly setMode: (path: string, mode: number) => Promise<void>;
  readonly setTime: (path: string, mtimeMs: number) => Promise<void>;
  /** Replaces what stands at `to`, in one step. */
  readonly move: (from: string, to: string) => Promise<void>;
  readonly remove: (path: string) => Promise<void>;
  /** An empty one. */
  readonly removeFolder: (path: string) => Promise<void>;
  /** Of our own making. Nothing there is fine. */
  readonly removeTree: (path: string) => Promise<void>;
  /** Waits until a file's content, or a folder's names, are on disk. */
  readonly sync: (path: string) => Promise<void>;
}

const NO_SECOND_NAME = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];
const CHUNK_BYTES = 256 * 1024;
/** Not through a link, and not waiting for the other end of a FIFO. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export const systemFiles: Files = {
  async stat(path) {
    return orNull(lstat(path), "ENOENT", "ENOTDIR");
  },
  readLink: (path) => readlink(path, "buffer"),
  list: (path) => readdir(path),
  read: (path) => orNull(readFile(path, "utf8"), "ENOENT"),
  facts: (path) => withFile(path, READ, (file) => readAll(file, () => Promise.resolve())),

  copy: (from, to) =>
    withFile(from, READ, (source) =>
      withFile(to, "wx", async (target) => {
        const facts = await readAll(source, (chunk) => target.appendFile(chunk));
        await target.chmod(facts.mode);
        return facts;
      }),
    ),
  addName: async (file, to) => {
    try {
      await link(file, to);
    } catch (error) {
      // Not every file system gives a file two names.
      if (!NO_SECOND_NAME.includes(codeOf(error))) throw error;
      await systemFiles.copy(file, to);
    }
  },
  write: (path, text) =>
    withFile(path, "wx", async (file) => {
      await file.writeFile(text);
      await file.sync();
    }),
  makeLink: (path, target) => symlink(target, path),
  makeFolder: async (path, mode) => {
    await mkdir(path, mode);
  },
  setMode: (path, mode) => chmod(path, mode),
  setTime: (path, mtimeMs) => utimes(path, mtimeMs / 1_000, mtimeMs / 1_000),
  move: (from, to) => rename(from, to),
  remove: (path) => unlink(path),
  removeFolder: (path) => rmdir(path),
  removeTree: (path) => removeTree(path),
  sync: (path) => withFile(path, READ, (file) => file.sync()),
};

/** The same, where each change is preceded by a check that may reject. */
export function guarded(files: Files, check: () => Promise<void>): Files {
  const of =
    <A extends readonly unknown[], R>(act: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await check();
      return act(...args);
    };
  return {
    ...files,
    copy: of(files.copy),
    addName: of(files.addName),
    write: of(files.write),
    makeLink: of(files.makeLink),
    makeFolder: of(files.makeFolder),
    setMode: of(files.setMode),
    setTime: of(files.setTime),
    move: of(files.move),
    remove: of(files.remove),
    removeFolder: of(files.removeFolder),
    removeTree: of(files.removeTree),
  };
}

/** One that is made is its owner's alone, until it gets the mode that it is to have. */
async function withFile<T>(
  path: string,
  flags: string | number,
  use: (file: FileHandle) => Promise<T>,
): Promise<T> {
  const file = await open(path, flags, 0o600);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

async function readAll(
  file: FileHandle,
  take: (chunk: Buffer) => Promise<void>,
): Promise<FileFacts> {
  const found = await file.stat();
  if (!found.isFile()) throw new Error("a file was replaced by something else while it was read");
  const hash = createHash("sha256");
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  let bytes = 0;
  for (;;) {
    const { bytesRead } = await file.read(chunk, 0, CHUNK_BYTES);
    if (bytesRead === 0) break;
    const piece = chunk.subarray(0, bytesRead);
    hash.update(piece);
    await take(piece);
    bytes += bytesRead;
  }
  const { mode, mtimeMs } = found;
  return { mode: mode & 0o7777, bytes, hash: hash.digest("hex"), mtimeMs };
}
