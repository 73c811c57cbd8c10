/** What is wrong with a plan: gathered while it is read, told all at once. */
import { JobtableError } from "../../job/errors.js";
import { formatPath } from "../steps/expression.js";

/** Who has more to mend reads the file again anyway. */
export const MAX_PROBLEMS = 20;

/** Enough to say how many there are; each takes a search for its place. */
const MAX_GATHERED = 1_000;

/** From the root of the plan: keys, and places in lists. */
export type PlanPath = readonly (string | number)[];

/** Both count from 1; columns in UTF-16 units. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** Where in a value: `key`: at the key that it stands under; a number: at that `${{` of a text, from 0. */
export type Spot = "value" | "key" | number;

/** What a plan was read from. */
export interface PlanSource {
  /** As messages name it. */
  readonly name: string;
  /** Null where it has no lines. A path that leads nowhere stands for as much of it as there is. */
  place(path: PlanPath, spot: Spot): Place | null;
  /** A number or a boolean as it was written, `1.10`; undefined where that is not known. */
  written(path: PlanPath): string | undefined;
}

export interface PlanProblem {
  /** `execute[0].run`; empty for the plan as a whole. */
  readonly path: string;
  /** Null for a plan that came from no file. */
  readonly place: Place | null;
  /** What was wrong and what is expected, without the place. */
  readonly message: string;
}

/** The one line tells the first problem and how many more there are. */
export class InvalidPlan extends JobtableError {
  /** In the order of the file; at most `MAX_PROBLEMS`. */
  readonly problems: readonly PlanProblem[];
  /** Of each of the problems: `FILE:LINE:COLUMN: what was wrong, what is expected`. */
  readonly lines: readonly string[];

  constructor(name: string, problems: readonly PlanProblem[], options?: ErrorOptions) {
    const lines = problems.slice(0, MAX_PROBLEMS).map((problem) => lineOf(name, problem));
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    super("invalid_plan", `${lines[0] ?? name}${more}`, options);
    this.name = "InvalidPlan";
    this.problems = problems.slice(0, MAX_PROBLEMS);
    this.lines = lines;
  }
}

function lineOf(name: string, { path, place, message }: PlanProblem): string {
  const where = place === null ? name : `${name}:${place.line}:${place.column}`;
  return [where, path, message].filter((part) => part !== "").join(": ");
}

export class Findings {
  readonly #source: PlanSource;
  readonly #problems: PlanProblem[] = [];

  constructor(source: PlanSource) {
    this.#source = source;
  }

  get count(): number {
    return this.#problems.length;
  }

  /**
   * @param path of the value that is wrong; with `key` of the one that should not be there.
   * @throws InvalidPlan when there are far too many.
   */
  add(path: PlanPath, message: string, spot: Spot = "value"): void {
    const wrong = spot === "key" ? path.slice(0, -1) : path;
    this.addAt(this.#source.place(path, spot), message, formatPath(wrong).replace(/^\./, ""));
  }

  addAt(place: Place | null, message: string, path = ""): void {
    this.#problems.push({ path, place, message });
    if (this.#problems.length === MAX_GATHERED) this.throwIfAny();
  }

  /** @throws InvalidPlan when there are any: in order, and of several at one place the first. */
  throwIfAny(): void {
    if (this.#problems.length === 0) return;
    const byPlace = new Map<string, PlanProblem>();
    for (const problem of this.#problems) {
      const { place, path } = problem;
      const at = place === null ? path : `${place.line}:${place.column}`;
      if (!byPlace.has(at)) byPlace.set(at, problem);
    }
    throw new InvalidPlan(this.#source.name, [...byPlace.values()].sort(inOrder));
  }
}

function inOrder({ place: one }: PlanProblem, { place: other }: PlanProblem): number {
  if (one === null || other === null) return 0;
  return one.line - other.line || one.column - other.column;
}
