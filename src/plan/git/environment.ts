/**
 * What git is started with, so that neither the environment nor the user's habits change what it
 * does or says: no GIT_* variable of this process, the C locale, nothing that asks, pages, signs,
 * hooks in or tidies up, and no taste in diffs. What decides how files look (line endings, filters,
 * attributes, ignored files) is left as the user has it.
 */

export type Environment = Readonly<Record<string, string | undefined>>;

const IDENTITY = { NAME: "Jobtable", EMAIL: "jobtable@localhost" } as const;

const FIXED: Readonly<Record<string, string>> = {
  LC_ALL: "C",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  // Else reading commands refresh the user's index on the way.
  GIT_OPTIONAL_LOCKS: "0",
  // Names come from files, and may look like patterns.
  GIT_LITERAL_PATHSPECS: "1",
  GIT_AUTHOR_NAME: IDENTITY.NAME,
  GIT_AUTHOR_EMAIL: IDENTITY.EMAIL,
  GIT_COMMITTER_NAME: IDENTITY.NAME,
  GIT_COMMITTER_EMAIL: IDENTITY.EMAIL,
};

const DROPPED = new Set(["LANGUAGE", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE"]);

export function gitEnvironment(env: Environment, added: Environment): NodeJS.ProcessEnv {
  const kept = Object.entries(env).filter(
    ([name]) => !name.startsWith("GIT_") && !DROPPED.has(name),
  );
  return { ...Object.fromEntries(kept), ...FIXED, ...added };
}

const SETTINGS = [
  "core.hooksPath=/dev/null",
  // Empty, not "false": before 2.36 the value was a program to run.
  "core.fsmonitor=",
  "core.untrackedCache=false",
  "core.splitIndex=false",
  // With it git would not notice that a file was changed.
  "core.ignoreStat=false",
  "core.trustctime=true",
  "core.checkStat=default",
  // Mixed line endings are nobody's mistake here.
  "core.safecrlf=false",
  "core.quotePath=false",
  "submodule.recurse=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "commit.gpgsign=false",
  "diff.suppressBlankEmpty=false",
  "diff.indentHeuristic=true",
  "apply.whitespace=nowarn",
  "apply.ignoreWhitespace=no",
] as const;

/** They stand before the verb, and git hands them on to the programs that it starts itself. */
export const GIT_OPTIONS: readonly string[] = [
  "--no-pager",
  ...SETTINGS.flatMap((setting) => ["-c", setting]),
];

/** The one shape of diff that all is read from and that patches are kept in. */
export const DIFF_OPTIONS: readonly string[] = [
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--src-prefix=a/",
  "--dst-prefix=b/",
  "--find-renames",
  // Git's own default since 2.31: beyond so many, pairs are found by equal content alone.
  "-l1000",
  "--diff-algorithm=myers",
  "--ignore-submodules=none",
  "--submodule=short",
];

/** Beside the above, for a patch: even to say how much context it has asks for one. */
export const PATCH_OPTIONS: readonly string[] = [
  "--patch",
  "--binary",
  "--full-index",
  "--unified=3",
  "--inter-hunk-context=0",
];
