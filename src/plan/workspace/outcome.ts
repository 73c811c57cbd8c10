/** What steps changed, as a patch and as a list of files, read from git's comparison of two trees. */
import { JobtableError } from "../../job/errors.js";
import { MAX_PATCH_BYTES } from "../../job/limits.js";
import { DIFF_OPTIONS, PATCH_OPTIONS } from "../git/environment.js";
import { OutputTooLarge, type Git } from "../git/git.js";
import { inWorkTree, type WorkTree } from "../git/repository.js";
import type { Change, FileSummary } from "./file-summary.js";

export interface Outcome {
  /** Git's own format, binary files included; empty where nothing changed. For `git apply`. */
  readonly patch: Uint8Array;
  /** By path. */
  readonly files: readonly FileSummary[];
  /** Of the patch. */
  readonly bytes: number;
}

/** Of the list that precedes the patch: it has a few hundred bytes for each file. */
const MAX_SUMMARY_BYTES = 128 * 1024 * 1024;

/** @throws JobtableError `outcome_refused`: a submodule, a name that is no text, too large. */
export async function compare(
  git: Git,
  tree: WorkTree,
  from: string,
  to: string,
  signal: AbortSignal | undefined,
): Promise<Outcome> {
  const at = { ...inWorkTree(tree), signal };
  const diff = ["diff-tree", "-r", ...DIFF_OPTIONS];
  const summary = new SummaryReader();
  let left = MAX_SUMMARY_BYTES;
  await git.records({ ...at, args: [...diff, "-z", "--raw", "--numstat", from, to] }, (field) => {
    left -= field.length;
    if (left < 0) throw tooLarge();
    summary.take(field);
  });
  const files = summary.files();
  if (files.length === 0) return { patch: new Uint8Array(), files, bytes: 0 };
  try {
    const patch = await git.run({
      ...at,
      args: [...diff, ...PATCH_OPTIONS, from, to],
      maxBytes: MAX_PATCH_BYTES,
    });
    return { patch, files, bytes: patch.length };
  } catch (error) {
    throw error instanceof OutputTooLarge ? tooLarge() : error;
  }
}

export function outcomeRefused(why: string): JobtableError {
  return new JobtableError("outcome_refused", why);
}

function tooLarge(): JobtableError {
  return outcomeRefused(
    `the changes make a patch of more than ${String(MAX_PATCH_BYTES)} bytes: ` +
      "have git ignore what is only built, or split the plan",
  );
}

type Counts = Pick<FileSummary, "insertions" | "deletions">;

/**
 * Takes the fields of `--raw --numstat -z`: `:<mode> <mode> <id> <id> <status>`, path, and for a
 * renamed one its new path; after all of these `<insertions> TAB <deletions> TAB <path>`, where for a
 * renamed one the path is empty and both follow.
 */
class SummaryReader {
  readonly #raw: { readonly head: string; readonly paths: string[] }[] = [];
  readonly #counts: Counts[] = [];
  #pathsToCome = 0;
  #isCounting = false;

  take(field: Buffer): void {
    if (this.#pathsToCome > 0) {
      this.#pathsToCome -= 1;
      if (!this.#isCounting) this.#raw.at(-1)?.paths.push(textOf(field));
      return;
    }
    const text = field.toString("latin1");
    this.#isCounting = !text.startsWith(":");
    if (this.#isCounting) {
      const [insertions = "", deletions = "", path] = text.split("\t", 3);
      this.#counts.push({ insertions: countOf(insertions), deletions: countOf(deletions) });
      this.#pathsToCome = path === "" ? 2 : 0;
    } else {
      this.#raw.push({ head: text, paths: [] });
      this.#pathsToCome = /[RC]\d*$/.test(text) ? 2 : 1;
    }
  }

  files(): FileSummary[] {
    return this.#raw.map(({ head, paths }, index) => {
      const [fromMode, toMode, fromId, toId, status = ""] = head.slice(1).split(" ");
      const [first = "", second] = paths;
      if (fromMode === SUBMODULE || toMode === SUBMODULE)
        throw outcomeRefused(
          `the submodule ${JSON.stringify(first)} was changed: a patch can't carry that`,
        );
      const counts = this.#counts[index] ?? { insertions: null, deletions: null };
      const change = changeOf(status, fromId === toId);
      return second === undefined
        ? { path: first, from: null, change, ...counts }
        : { path: second, from: first, change, ...counts };
    });
  }
}

const SUBMODULE = "160000";

function countOf(text: string): number | null {
  return text === "-" ? null : Number(text);
}

function changeOf(status: string, sameContent: boolean): Change {
  switch (status.charAt(0)) {
    case "A":
      return "added";
    case "D":
      return "deleted";
    case "R":
      return "renamed";
    case "T":
      return "type";
    default:
      return sameContent ? "mode" : "modified";
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** @throws JobtableError `outcome_refused` for a name that is no text. */
export function textOf(path: Buffer): string {
  try {
    return UTF8.decode(path);
  } catch {
    throw outcomeRefused(
      `the name ${JSON.stringify(path.toString("latin1"))} is not in UTF-8: rename the file`,
    );
  }
}
