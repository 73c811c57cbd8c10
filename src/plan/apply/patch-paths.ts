/**
 * The paths that a patch touches, as git reads them from it: forwards it names the new ones,
 * backwards the old ones. Those are refused that git would refuse, or that no patch of ours has.
 */
import { JobtableError } from "../../job/errors.js";
import type { Git } from "../git/git.js";
import { inWorkTree, type WorkTree } from "../git/repository.js";
import { isOwn } from "../workspace/base.js";

/** @throws JobtableError `apply_failed`: no patch, or a path that leads elsewhere. */
export async function patchPaths(
  git: Git,
  tree: WorkTree,
  patch: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<string[]> {
  if (SUBMODULE.test(Buffer.from(patch).toString("latin1")))
    throw unusable("it changes a submodule");
  const paths = new Set<string>();
  for (const direction of [[], ["--reverse"]]) {
    const args = ["apply", "--numstat", "-z", ...direction, "-"];
    const call = { ...inWorkTree(tree), args, input: patch, signal };
    try {
      await git.records(call, (field) => paths.add(pathIn(field)));
    } catch (error) {
      if (error instanceof JobtableError && error.code === "git_failed")
        throw unusable(error.message, error);
      throw error;
    }
  }
  return [...paths].sort();
}

/** Headers stand at the start of a line, where lines of content have a sign of their own. */
const SUBMODULE = /^((new file|deleted file|old|new) mode|index [0-9a-f]+\.\.[0-9a-f]+) 160000$/m;

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** `<insertions> TAB <deletions> TAB <path>` */
function pathIn(field: Buffer): string {
  const bytes = field.subarray(field.indexOf(TAB, field.indexOf(TAB) + 1) + 1);
  let path: string;
  try {
    path = UTF8.decode(bytes);
  } catch (error) {
    throw unusable(
      `a name in it is not in UTF-8: ${JSON.stringify(bytes.toString("latin1"))}`,
      error,
    );
  }
  const names = path.split("/");
  const leadsOut = names.some((name) => name === "" || name === "." || name === "..");
  if (
    leadsOut ||
    names.some((name) => name.toLowerCase() === ".git") ||
    isOwn(Buffer.from(path.toLowerCase()))
  )
    throw unusable(`it names ${JSON.stringify(path)}, where no plan may write`);
  return path;
}

const TAB = 0x09;

function unusable(why: string, cause?: unknown): JobtableError {
  return new JobtableError("apply_failed", `the patch can't be used: ${why}`, { cause });
}
