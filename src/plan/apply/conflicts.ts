/** Why a patch does not fit, file by file, read from what `git apply` says. */

export interface FileConflict {
  /** Relative to the root. */
  readonly file: string;
  /** Of the file as the patch knows it, where the first piece that does not fit begins; from 1. */
  readonly line: number | null;
  /** For people; a sentence about the file without the file. */
  readonly reason: string;
}

/** Beyond so many the list helps nobody. */
export const MAX_CONFLICTS = 1_000;

/** What git says after the name of a file, and what that means. */
const REASONS: readonly (readonly [RegExp, string])[] = [
  [/^patch does not apply/, "the lines that the patch changes are not there"],
  [/^No such file or directory/, "is not there"],
  [/^already exists in working directory/, "exists already"],
  [/^wrong type/, "is of another kind here: file, link or folder"],
  [/^removal patch leaves file contents/, "has content that the patch does not know"],
];

/** What git says around the name of a file. */
const AROUND: readonly (readonly [RegExp, string])[] = [
  [/^the patch applies to '(.*)' \([0-9a-f]*\), which does not match/s, "has other content"],
  [/^binary patch does not apply to '(.*)'/s, "has other content"],
  [/^affected file '(.*)' is beyond a symbolic link/s, "lies behind a symbolic link"],
];

/** @param paths of the patch: names may hold anything, so they are recognised rather than parsed. */
export function conflictsIn(stderr: string, paths: ReadonlySet<string>): FileConflict[] {
  const lines = new Map<string, number>();
  const reasons = new Map<string, string>();
  for (const message of stderr.split(/^error: /m).slice(1)) {
    const failed = /^patch failed: (.*):(\d+)\s*$/s.exec(message);
    if (failed?.[1] !== undefined) lines.set(failed[1], Number(failed[2]));
    const found = failed === null ? (around(message) ?? behind(message, paths)) : null;
    // For a binary file git says the same again, in general words.
    if (found !== null && paths.has(found.file) && !reasons.has(found.file))
      reasons.set(found.file, found.reason);
  }
  return [...reasons].map(([file, reason]) => {
    const line = lines.get(file) ?? 0;
    return { file, line: line === 0 ? null : line, reason };
  });
}

interface Found {
  readonly file: string;
  readonly reason: string;
}

function around(message: string): Found | null {
  for (const [pattern, reason] of AROUND) {
    const file = pattern.exec(message)?.[1];
    if (file !== undefined) return { file, reason };
  }
  return null;
}

/** `<file>: <words>`, where the name may hold a colon too. */
function behind(message: string, paths: ReadonlySet<string>): Found | null {
  for (let at = message.indexOf(": "); at !== -1; at = message.indexOf(": ", at + 1)) {
    const file = message.slice(0, at);
    if (!paths.has(file)) continue;
    const words = message.slice(at + 2).split("\n", 1)[0] ?? "";
    const known = REASONS.find(([pattern]) => pattern.test(words));
    return { file, reason: known?.[1] ?? words };
  }
  return null;
}
