import { expect, test } from "vitest";
import type { FileSummary } from "../plan/workspace/file-summary.js";
import type { StepReport } from "../plan/step-report.js";
import type { PlanView, RunView } from "../plan/view.js";
import { filesText, patchText, planTable, planText, stepFoot } from "./plan-text.js";

const PLAIN = { columns: null, colour: false };
const COLOUR = { columns: 80, colour: true };
const T0 = Date.UTC(2030, 0, 1);

const STEP: StepReport = {
  index: 0,
  id: null,
  name: "Change them",
  kind: "command",
  state: "succeeded",
  exitCode: 0,
  signal: null,
  startedAtMs: T0 + 5_000,
  finishedAtMs: T0 + 6_000,
  errorMessage: null,
  log: "one\u001b[2J\ntwo\n",
  logBytes: 12,
};
const FILE: FileSummary = {
  path: "src/a.js",
  from: null,
  change: "modified",
  insertions: 3,
  deletions: 1,
};
const EXECUTE: RunView = {
  jobId: "01J0000000000000000000000B",
  phase: "execute",
  status: "succeeded",
  createdAtMs: T0,
  startedAtMs: T0 + 4_000,
  finishedAtMs: T0 + 7_000,
  workerId: "worker-00000000",
  errorMessage: null,
  outcome: {
    status: "succeeded",
    startedAtMs: T0 + 4_000,
    finishedAtMs: T0 + 7_000,
    errorMessage: null,
    files: [FILE],
    notes: ['the submodule "sub" is empty here'],
  },
  patchBytes: 10,
  steps: [STEP],
};
const VIEW: PlanView = {
  plan: {
    planId: "01J0000000000000000000000A",
    name: "edit",
    workspace: "/srv/app",
    file: null,
    createdAtMs: T0,
    usedAtMs: T0,
  },
  execute: EXECUTE,
  apply: null,
};

test("a plan says when each phase began, how long it waited and how long it took", () => {
  const text = planText(VIEW, PLAIN, { logs: false });
  expect(text).toMatch(/^began: +2030-01-01T00:00:04\.000Z$/m);
  expect(text).toMatch(/^waited: +4\.0 s$/m);
  expect(text).toMatch(/^took: +3\.0 s$/m);
  expect(text).toMatch(/^note: +the submodule "sub" is empty here$/m);
  expect(text).toMatch(/modified +\+3 -1 +src\/a\.js\n1 file changed, \+3 -1$/);
  expect(text).not.toContain("two");
});

test("one that waits has no times yet, and clocks that differ give none below zero", () => {
  const waits = { ...EXECUTE, status: "queued", startedAtMs: null, outcome: null } as const;
  const text = planText({ ...VIEW, execute: waits }, PLAIN, { logs: false });
  expect(text).toMatch(/^execute: +pending$/m);
  expect(text).not.toMatch(/^(began|waited|took)/m);
  const early = { ...EXECUTE, startedAtMs: T0 - 9_000 };
  expect(planText({ ...VIEW, execute: early }, PLAIN, { logs: false })).toMatch(/^waited: +0 ms$/m);
});

test("phases and steps have the same words for how they ended", () => {
  const states = ["succeeded", "timed_out", "failed", "cancelled", "skipped", "running"] as const;
  const steps = states.map((state, index) => ({ ...STEP, state, index }));
  const text = planText({ ...VIEW, execute: { ...EXECUTE, steps } }, PLAIN, { logs: false });
  for (const [index, word] of [
    "done",
    "timeout",
    "failed",
    "cancelled",
    "skipped",
    "running",
  ].entries())
    expect(text).toMatch(new RegExp(`^${String(index + 1)} +${word} `, "m"));
  expect(text).not.toMatch(/succeeded|timed_out/);
  expect(stepFoot({ ...STEP, state: "timed_out", errorMessage: "TimeLimit: 1 s" })).toBe(
    "timeout after 1.0 s: TimeLimit: 1 s",
  );
  expect(planTable([VIEW], PLAIN)).toMatch(/edit +done +- +2030/);
});

test("logs stand under their steps, without what steers a terminal", () => {
  const text = planText(VIEW, PLAIN, { logs: true });
  expect(text).toContain("-- execute, step 1: Change them\none\ntwo\n\n");
});

test("files say what became of them", () => {
  const renamed: FileSummary = { ...FILE, from: "b", path: "c", change: "renamed" };
  const binary: FileSummary = { ...FILE, path: "d.png", insertions: null, deletions: null };
  const text = filesText([renamed, binary], PLAIN);
  expect(text).toMatch(/renamed +\+3 -1 +b -> c/);
  expect(text).toMatch(/binary +d\.png/);
  expect(text).toMatch(/2 files changed, \+3 -1$/);
  expect(filesText([], PLAIN)).toBe("nothing changed");
});

test("the lines of a hunk are text, whatever they look like", () => {
  const patch = [
    "diff --git a/q.sql b/q.sql",
    "--- a/q.sql",
    "+++ b/q.sql",
    "@@ -1,2 +1,2 @@ head",
    "--- a comment",
    "+++ another",
    " same",
    "\\ No newline at end of file",
    "diff --git a/r b/r",
    "",
  ].join("\n");
  const dim = (text: string): string => `\u001b[2m${text}\u001b[0m`;
  const lines = patchText(patch, COLOUR).split("\n");
  expect(lines[1]).toBe(dim("--- a/q.sql"));
  expect(lines[3]).toBe("\u001b[36m@@ -1,2 +1,2 @@ head\u001b[0m");
  expect(lines[4]).toBe("\u001b[31m--- a comment\u001b[0m");
  expect(lines[5]).toBe("\u001b[32m+++ another\u001b[0m");
  expect(lines[6]).toBe(" same");
  expect(lines[8]).toBe(dim("diff --git a/r b/r"));
  expect(lines).toHaveLength(9);
});

test("a change of line ends shows, and nothing steers the terminal", () => {
  const patch = "@@ -1 +1 @@\n-one\r\n+one\u001b[2J\n";
  expect(patchText(patch, PLAIN)).toBe("@@ -1 +1 @@\n-one^M\n+one");
});
