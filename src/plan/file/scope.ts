/** Which expressions may stand where. What they come to is known when the step runs. */
import { posix } from "node:path";
import type { Phase } from "../../job/job.js";
import { nearest } from "../../job/nearest.js";
import { parseText, type Expression } from "../steps/expression.js";
import type { Findings, PlanPath } from "./findings.js";
import { isMap } from "./shape.js";

interface KnownStep {
  readonly index: number;
  readonly kind: "command" | "task";
}

/** The steps that have an id, by phase; of two with one id the first. */
export type StepIds = Readonly<Record<Phase, ReadonlyMap<string, KnownStep>>>;

/** Who asks: a step, or null for the plan's own `env`, which is for all of them. */
export interface Asker {
  readonly ids: StepIds;
  readonly step: { readonly phase: Phase; readonly index: number } | null;
}

/** Doubled ids are findings. */
export function stepIds(plan: unknown, findings: Findings): StepIds {
  const idsOf = (phase: Phase): ReadonlyMap<string, KnownStep> => {
    const ids = new Map<string, KnownStep>();
    for (const [index, step] of stepsIn(plan, phase).entries()) {
      if (!isMap(step) || typeof step["id"] !== "string") continue;
      const { id } = step;
      const other = ids.get(id);
      if (other === undefined)
        ids.set(id, { index, kind: Object.hasOwn(step, "task") ? "task" : "command" });
      else
        findings.add(
          [phase, index, "id"],
          `${phase}[${other.index}] has the id ${id} already: ids are unique within a phase`,
        );
    }
    return ids;
  };
  return { execute: idsOf("execute"), apply: idsOf("apply") };
}

/** As they stand there, whatever they are. */
export function stepsIn(plan: unknown, phase: Phase): readonly unknown[] {
  const steps = isMap(plan) ? plan[phase] : null;
  return Array.isArray(steps) ? steps : [];
}

/** A text that may hold expressions. */
export function checkText(text: string, path: PlanPath, asker: Asker, findings: Findings): void {
  const parsed = parseText(text);
  if (parsed.kind === "malformed") {
    findings.add(path, parsed.problem, parsed.opening);
    return;
  }
  for (const part of parsed.parts) {
    if (part.kind === "text") continue;
    const problem = problemOf(part.expression, asker);
    if (problem !== null) findings.add(path, problem, part.opening);
  }
}

/** All texts of a JSON value, its keys apart. */
export function checkTexts(value: unknown, path: PlanPath, asker: Asker, findings: Findings): void {
  if (typeof value === "string") checkText(value, path, asker, findings);
  else if (Array.isArray(value))
    for (const [index, item] of value.entries())
      checkTexts(item, [...path, index], asker, findings);
  else if (isMap(value))
    for (const [key, item] of Object.entries(value))
      checkTexts(item, [...path, key], asker, findings);
}

/**
 * A text that may hold none, without its escapes.
 * @param reason why, and what to do.
 */
export function plainText(
  text: string,
  path: PlanPath,
  reason: string,
  findings: Findings,
): string {
  const parsed = parseText(text);
  const parts = parsed.kind === "parsed" ? parsed.parts : [];
  const found = parsed.kind === "malformed" ? parsed : parts.find((part) => part.kind !== "text");
  if (found !== undefined && "opening" in found) findings.add(path, reason, found.opening);
  return parts.map((part) => (part.kind === "text" ? part.text : "")).join("");
}

/** One that holds expressions is checked when the step runs, and in any case where links lead then. */
export function checkCwd(text: string, path: PlanPath, asker: Asker, findings: Findings): void {
  const before = findings.count;
  checkText(text, path, asker, findings);
  const parsed = parseText(text);
  if (findings.count > before || parsed.kind === "malformed") return;
  const [only, ...others] = parsed.parts;
  if (only?.kind !== "text" || others.length > 0) return;
  const normal = posix.normalize(only.text);
  if (posix.isAbsolute(normal) || normal === ".." || normal.startsWith("../"))
    findings.add(path, "this leaves the working tree: expected a folder inside it, such as src");
}

function problemOf(expression: Expression, { ids, step: asking }: Asker): string | null {
  if (expression.kind !== "step") return null;
  const { id, output } = expression;
  if (asking === null)
    return "the plan's env is for all steps and knows none of them: put this into the env of a step";
  const { phase } = asking;
  const step = ids[phase].get(id);
  if (step === undefined) return unknownStep(id, phase, ids);
  if (step.index === asking.index) return "a step does not know its own outputs";
  if (step.index > asking.index)
    return `the step ${id} comes later: only outputs of earlier steps are known`;
  if (step.kind === "task" && output !== "output")
    return `${id} is a task and has no ${output}: use steps.${id}.output`;
  return null;
}

function unknownStep(id: string, phase: Phase, ids: StepIds): string {
  const other = phase === "execute" ? "apply" : "execute";
  if (ids[other].has(id))
    return `${id} is a step of ${other}: outputs don't reach from one phase into the other`;
  const known = [...ids[phase].keys()];
  const meant = nearest(id, known);
  const hint = known.length === 0 ? "none has one" : `known: ${known.slice(0, 20).join(", ")}`;
  return `no step of ${phase} has the id ${id}; ${meant === undefined ? hint : `did you mean ${meant}?`}`;
}
