/** From a value of any shape to a plan: everything about it is checked here, and told at once. */
import { dirname, resolve } from "node:path";
import { parseDuration } from "../../job/duration.js";
import type { Phase } from "../../job/job.js";
import { MAX_TIMEOUT_MS } from "../../job/limits.js";
import type { PlanDefinition, StepDefinition } from "../definition.js";
import type { Findings, PlanPath, PlanSource } from "./findings.js";
import { DEFAULT_SHELL, PlanSchema } from "./schema.js";
import {
  checkCwd,
  checkText,
  checkTexts,
  plainText,
  stepIds,
  stepsIn,
  type Asker,
} from "./scope.js";
import { fits, isMap } from "./shape.js";

/** A plan as its file says it: it becomes a `PlanDefinition` once its workspace is found. */
export interface PlanFile extends Omit<PlanDefinition, "workspace"> {
  /** Absolute path of the file; null for a plan that a program gave. */
  readonly file: string | null;
  readonly description: string | null;
  /** Absolute path, not looked at yet; null: the repository of the current folder. */
  readonly workspace: string | null;
}

const NO_EXPRESSIONS = "expressions have no place here; write $${{ for the text ${{";
const NO_PASTING =
  'text that is pasted into a command may run as code: give it by env and use "$NAME", or write $${{ for the text ${{';
const MAX_NAME_CHARS = 60;

/**
 * @param file absolute path, or null.
 * @param findings of whoever read `value`; what is wrong is added.
 * @throws InvalidPlan
 */
export function definePlan(
  value: unknown,
  source: PlanSource,
  findings: Findings,
  file: string | null,
): PlanFile {
  const reader = new PlanReader(value, source, findings);
  const shaped = fits(PlanSchema, value, [], findings);
  const [execute, apply] = [reader.steps("execute"), reader.steps("apply")];
  const head = isMap(value) ? value : {};
  const timeoutMs = reader.duration(head["timeout"], ["timeout"]);
  const env = reader.env(head["env"], ["env"], { ids: reader.ids, step: null });
  const workspace = reader.plain(head["workspace"], ["workspace"], NO_EXPRESSIONS);
  findings.throwIfAny();
  if (!shaped) throw new Error("a plan that does not fit has findings");
  return {
    file,
    name: value.name,
    description: value.description ?? null,
    workspace: workspace === null ? null : resolve(file === null ? "." : dirname(file), workspace),
    base: value.base ?? "head",
    env,
    timeoutMs,
    execute,
    apply,
  };
}

type Keys = Readonly<Record<string, unknown>>;
type AnyStep = Pick<StepDefinition, "id" | "name" | "timeoutMs" | "continueOnError">;

/** Takes what it can of a plan that may be misshapen, which is told elsewhere: all slips at once. */
class PlanReader {
  readonly #plan: unknown;
  readonly #source: PlanSource;
  readonly #findings: Findings;
  readonly ids: Asker["ids"];

  constructor(plan: unknown, source: PlanSource, findings: Findings) {
    this.#plan = plan;
    this.#source = source;
    this.#findings = findings;
    this.ids = stepIds(plan, findings);
  }

  steps(phase: Phase): StepDefinition[] {
    return stepsIn(this.#plan, phase).map((step, index) => {
      const path = [phase, index];
      const asker = { ids: this.ids, step: { phase, index } };
      const keys = isMap(step) ? step : {};
      return Object.hasOwn(keys, "task")
        ? this.#task(keys, path, asker)
        : this.#command(keys, path, asker);
    });
  }

  duration(written: unknown, path: PlanPath): number | null {
    if (typeof written !== "string") return null;
    const ms = parseDuration(written, "ms");
    if (ms === 0)
      this.#findings.add(path, "expected more than 0; leave it out where there is no limit");
    else if (ms === undefined || ms > MAX_TIMEOUT_MS)
      this.#findings.add(path, `expected at most ${MAX_TIMEOUT_MS / 86_400_000}d, got ${written}`);
    return ms ?? null;
  }

  env(written: unknown, path: PlanPath, asker: Asker): Record<string, string> {
    if (!isMap(written)) return {};
    const texts = Object.entries(written).map(([name, value]): [string, string] => {
      const at = [...path, name];
      if (typeof value !== "string") return [name, this.#source.written(at) ?? String(value)];
      checkText(value, at, asker, this.#findings);
      this.#passable(value, at);
      return [name, value];
    });
    return Object.fromEntries(texts);
  }

  plain(written: unknown, path: PlanPath, reason: string): string | null {
    if (typeof written !== "string") return null;
    return plainText(written, path, reason, this.#findings);
  }

  #command(step: Keys, path: PlanPath, asker: Asker): StepDefinition {
    const at = (key: string): PlanPath => [...path, key];
    const run = this.plain(step["run"], at("run"), NO_PASTING) ?? "";
    this.#passable(run, at("run"));
    const cwd = textOr(step["cwd"], ".");
    checkCwd(cwd, at("cwd"), asker, this.#findings);
    return {
      kind: "command",
      ...this.#any(step, path, firstLine(run)),
      run,
      shell: this.#shell(textOr(step["shell"], DEFAULT_SHELL), at("shell")),
      cwd,
      env: this.env(step["env"], at("env"), asker),
    };
  }

  #task(step: Keys, path: PlanPath, asker: Asker): StepDefinition {
    const task = textOr(step["task"], "");
    const input = step["input"] === undefined ? {} : step["input"];
    checkTexts(input, [...path, "input"], asker, this.#findings);
    return { kind: "task", ...this.#any(step, path, `task ${task}`), task, input };
  }

  #any(step: Keys, path: PlanPath, defaultName: string): AnyStep {
    return {
      id: typeof step["id"] === "string" ? step["id"] : null,
      name: this.plain(step["name"], [...path, "name"], NO_EXPRESSIONS) ?? defaultName,
      timeoutMs: this.duration(step["timeout"], [...path, "timeout"]),
      continueOnError: step["continue_on_error"] === true,
    };
  }

  #shell(written: string, path: PlanPath): string[] {
    const text = plainText(written, path, NO_PASTING, this.#findings);
    if (/["'\\`]/.test(text))
      this.#findings.add(path, "quotes have no meaning here: expected words separated by blanks");
    return text.trim().split(/\s+/);
  }

  /** Commands and variables are C strings in UTF-8. */
  #passable(text: string, path: PlanPath): void {
    if (text.includes("\0")) this.#findings.add(path, "a NUL character can't be passed on");
    else if (!text.isWellFormed())
      this.#findings.add(path, "half of a surrogate pair can't be passed on");
  }
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === "string" ? value : otherwise;
}

function firstLine(command: string): string {
  const line = command.trim().split("\n", 1)[0]?.trim() ?? "";
  const letters = Array.from(line);
  return letters.length > MAX_NAME_CHARS
    ? `${letters.slice(0, MAX_NAME_CHARS - 1).join("")}…`
    : line;
}
