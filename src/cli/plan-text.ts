/** A plan as people read it. */
import { formatJobId, formatPlanId } from "../job/id.js";
import { STATES } from "../http/wire.js";
import type { FileSummary } from "../plan/workspace/file-summary.js";
import type { StepReport } from "../plan/step-report.js";
import type { PlanView, RunView } from "../plan/view.js";
import { plain, painted, stateColour, type Look, type Paint } from "./look.js";
import { fields, table, type Column } from "./table.js";
import { clean, formatMs } from "./text.js";

const PLAN_COLUMNS: readonly Column[] = [
  { head: "PLAN", importance: 6, least: 8 },
  { head: "EXECUTE", importance: 5, paint: stateColour },
  { head: "APPLY", importance: 4, paint: stateColour },
  { head: "USED", importance: 2 },
  { head: "WORKSPACE", importance: 3, least: 12 },
  { head: "ID", importance: 1 },
];

export function planTable(plans: readonly PlanView[], look: Look): string {
  const rows = plans.map(({ plan, execute, apply }) => [
    plan.name,
    stateOf(execute),
    stateOf(apply),
    new Date(plan.usedAtMs).toISOString(),
    plan.workspace,
    formatPlanId(plan.planId),
  ]);
  return table(PLAN_COLUMNS, rows, look);
}

function stateOf(run: RunView | null): string {
  return run === null ? "-" : STATES[run.status];
}

/** Both phases with their steps, and what the patch changes. */
export function planText(
  { plan, execute, apply }: PlanView,
  look: Look,
  { logs }: { readonly logs: boolean },
): string {
  const head = fields([
    ["plan", plan.name],
    ["id", formatPlanId(plan.planId)],
    ["workspace", plan.workspace],
    ["file", plan.file],
  ]);
  const parts = [head];
  if (execute !== null) parts.push(runText(execute, look), ...(logs ? logsOf(execute) : []));
  if (execute?.outcome?.status === "succeeded") parts.push(filesText(execute.outcome.files, look));
  if (apply !== null) parts.push(runText(apply, look), ...(logs ? logsOf(apply) : []));
  return parts.join("\n\n");
}

const STEP_COLUMNS: readonly Column[] = [
  { head: "STEP", importance: 3 },
  { head: "STATE", importance: 4, paint: stateColour },
  { head: "NAME", importance: 5, least: 10 },
  { head: "TOOK", importance: 2 },
  { head: "ERROR", importance: 1, least: 12 },
];

function runText(run: RunView, look: Look): string {
  const state = STATES[run.status];
  const tookMs = betweenMs(run.startedAtMs, run.finishedAtMs);
  const waitedMs = betweenMs(run.createdAtMs, run.startedAtMs);
  const head = fields([
    [run.phase, state, stateColour(state, look)],
    ["job", formatJobId(run.jobId)],
    ["began", timeText(run.startedAtMs)],
    ["waited", waitedMs === null ? null : formatMs(waitedMs)],
    ["took", tookMs === null ? null : formatMs(tookMs)],
    ["worker", run.workerId],
    ["error", run.errorMessage],
    ...(run.outcome?.notes ?? []).map((note) => ["note", note] as const),
  ]);
  if (run.steps.length === 0) return head;
  const rows = run.steps.map((step) => [
    String(step.index + 1),
    stateWord(step),
    step.name,
    tookText(step),
    step.errorMessage ?? "",
  ]);
  return `${head}\n${table(STEP_COLUMNS, rows, look)}`;
}

function tookText(step: StepReport): string {
  const tookMs = betweenMs(step.startedAtMs, step.finishedAtMs);
  return tookMs === null ? "" : formatMs(tookMs);
}

/** Null where one is not known. The clocks of two machines may differ: never less than 0. */
function betweenMs(fromMs: number | null, toMs: number | null): number | null {
  return fromMs === null || toMs === null ? null : Math.max(0, toMs - fromMs);
}

function timeText(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString();
}

/** What each step wrote, under its name. */
function logsOf({ phase, steps }: RunView): string[] {
  return steps
    .filter(({ log }) => log !== "")
    .map((step) => `-- ${phase}, ${stepHead(step)}\n${cleanLines(step.log)}`);
}

/** Text of several lines without anything that steers a terminal; tabs stay, as blanks. */
export function cleanLines(text: string): string {
  return text.trimEnd().split(/\r?\n/).map(cleanLine).join("\n");
}

function cleanLine(line: string): string {
  return clean(line.replaceAll("\t", "    "));
}

/** In the words of jobs and phases. */
function stateWord({ state }: Pick<StepReport, "state">): string {
  return state === "skipped" ? state : STATES[state];
}

/** One line for each file, and their sum. */
export function filesText(files: readonly FileSummary[], look: Look): string {
  if (files.length === 0) return "nothing changed";
  const rows = files.map((file) => [
    file.change,
    file.insertions === null || file.deletions === null
      ? "binary"
      : `+${String(file.insertions)} -${String(file.deletions)}`,
    file.from === null ? file.path : `${file.from} -> ${file.path}`,
  ]);
  const columns: readonly Column[] = [
    { head: "CHANGE", importance: 2 },
    { head: "LINES", importance: 1 },
    { head: "FILE", importance: 3 },
  ];
  return `${table(columns, rows, look)}\n${sumOf(files)}`;
}

/** `3 files changed, +12 -4` */
export function sumOf(files: readonly FileSummary[]): string {
  if (files.length === 0) return "nothing changed";
  let [insertions, deletions] = [0, 0];
  for (const file of files) {
    insertions += file.insertions ?? 0;
    deletions += file.deletions ?? 0;
  }
  const count = files.length === 1 ? "1 file" : `${String(files.length)} files`;
  return `${count} changed, +${String(insertions)} -${String(deletions)}`;
}

/** What stands above a step's output while it runs. */
export function stepHead(step: Pick<StepReport, "index" | "name">): string {
  return clean(`step ${String(step.index + 1)}: ${step.name}`);
}

/** What stands below it. */
export function stepFoot(step: StepReport): string {
  const tookMs = betweenMs(step.startedAtMs, step.finishedAtMs) ?? 0;
  const why = step.errorMessage === null ? "" : `: ${step.errorMessage}`;
  return clean(`${stateWord(step)} after ${formatMs(tookMs)}${why}`);
}

/**
 * The lines of a patch as people read it: in colour where that shows, and without what steers a
 * terminal. The end of a line of Windows shows as ^M. A hunk says how many lines it has: what stands
 * among them is text, whatever it looks like.
 */
export function patchText(patch: string, look: Look): string {
  let [before, after] = [0, 0];
  const paintOf = (line: string): Paint => {
    if (before <= 0 && after <= 0) {
      const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
      if (hunk === null) return painted("dim", look);
      [before, after] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
      return painted("cyan", look);
    }
    if (line.startsWith("\\")) return plain;
    if (!line.startsWith("+")) before -= 1;
    if (!line.startsWith("-")) after -= 1;
    if (line.startsWith("+")) return painted("green", look);
    return line.startsWith("-") ? painted("red", look) : plain;
  };
  return patch
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => paintOf(line)(cleanLine(line.replace(/\r$/, "^M"))))
    .join("\n");
}
