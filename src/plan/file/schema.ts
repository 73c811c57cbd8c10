/**
 * The shape of a plan file, once: what files are checked against, and what editors complete and
 * underline by (schemas/plan.schema.json, which `npm run docs` writes). `errorMessage` says what is
 * expected, in our messages and in those of editors. What a schema can't say (ids, expressions) is
 * checked in define.ts.
 */
import Type, { type Static, type TArray } from "typebox";
import { MAX_PATH_BYTES, MAX_PLAN_STEPS } from "../../job/limits.js";
import { RESERVED_VARIABLES } from "../definition.js";

/** A plan is written by hand; what is larger is something else. */
export const MAX_FILE_BYTES = 1024 * 1024;
/** Within what Linux takes as one argument (131,072 bytes) for most texts; longer ones belong into a file. */
const MAX_COMMAND_CHARS = 65_536;
const MAX_ENV_CHARS = 65_536;
const MAX_NAME_CHARS = 200;
const MAX_DESCRIPTION_CHARS = 4_000;
const MAX_CWD_CHARS = 4_096;
const MAX_VARIABLES = 500;

export const DEFAULT_SHELL = "sh -e -c";

/** Names that stand on the command line, in file names and in records; as those of tasks. */
const NAME = "^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$";
const NAME_RULE = 'letters, digits, "_", "-" and "." (first a letter or digit), at most 100';
const text = (what: string, options: object): ReturnType<typeof Type.String> =>
  Type.String({ errorMessage: `expected ${what}`, ...options });
const lines = (most: number): object => ({ minLength: 1, maxLength: most });
const oneLine = (most: number): object => ({
  ...lines(most),
  pattern: "^(?=.*\\S)[^\\u0000-\\u001f\\u007f]*$",
});

const Env = Type.Record(
  Type.String({
    pattern: `^(?!${RESERVED_VARIABLES.join("|")}|__proto__$)[A-Za-z_][A-Za-z0-9_]*$`,
  }),
  Type.Union([Type.String({ maxLength: MAX_ENV_CHARS }), Type.Number(), Type.Boolean()], {
    errorMessage: `expected text (at most ${MAX_ENV_CHARS} characters, "" for none), a number or a boolean`,
  }),
  {
    additionalProperties: false,
    maxProperties: MAX_VARIABLES,
    description: `Environment variables by name: letters, digits and _; names that begin with ${RESERVED_VARIABLES.join(", ")} are reserved. Values may hold expressions`,
    errorMessage: `expected a map of at most ${MAX_VARIABLES} variables, KEY: value`,
    examples: [{ LOG_LEVEL: "debug" }],
  },
);

const duration = (of: string): ReturnType<typeof Type.String> =>
  text("a duration with its unit, such as 30s, 10m or 1h", {
    pattern: "^\\s*(\\d+(\\.\\d+)?|\\.\\d+)\\s*([mM][sS]|[sSmMhHdD])\\s*$",
    description: `Longest time that ${of} may take, with its unit: ms, s, m, h or d`,
    examples: ["30s", "10m", "1h"],
  });

const anyStep = {
  id: Type.Optional(
    text('letters, digits, "_" and "-" (first a letter or "_"), at most 100', {
      pattern: "^[A-Za-z_][A-Za-z0-9_-]{0,99}$",
      description:
        "Names the step for expressions in later steps of its phase: ${{ steps.ID.stdout }}",
    }),
  ),
  name: Type.Optional(
    text(`one line of text, at most ${MAX_NAME_CHARS} characters`, {
      ...oneLine(MAX_NAME_CHARS),
      description: "What people see; default: the first line of the command, or the task's name",
    }),
  ),
  timeout: Type.Optional(duration("the step")),
  continue_on_error: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Whether the steps after this one run although it failed",
      errorMessage: "expected true or false",
    }),
  ),
};

export const CommandStepSchema = Type.Object(
  {
    run: text(`a command, at most ${MAX_COMMAND_CHARS} characters`, {
      ...lines(MAX_COMMAND_CHARS),
      pattern: "\\S",
      description:
        'A command for the shell. It holds no expressions: give values by env and use "$NAME"',
      examples: ["npm test", 'test "$(git rev-parse HEAD)" = "$WANTED"'],
    }),
    shell: Type.Optional(
      text("a program and its arguments, separated by blanks and without quotes", {
        ...oneLine(MAX_NAME_CHARS),
        default: DEFAULT_SHELL,
        description: "The program that the command is given to, as its last argument",
        examples: ["bash -euo pipefail -c", "python3 -c"],
      }),
    ),
    cwd: Type.Optional(
      text("a folder inside the working tree", {
        ...oneLine(MAX_CWD_CHARS),
        default: ".",
        description:
          "Where it runs, relative to the root of the working tree. May hold expressions",
        examples: ["packages/api"],
      }),
    ),
    env: Type.Optional(Env),
    ...anyStep,
  },
  { additionalProperties: false, description: "Runs a command" },
);

export const TaskStepSchema = Type.Object(
  {
    task: text(`the name of a task: ${NAME_RULE}`, {
      pattern: NAME,
      description: "The name of a task that the worker knows",
      examples: ["ocr"],
    }),
    input: Type.Optional(
      Type.Unknown({
        description:
          "The task's input; default {}. Texts in it may hold expressions; one that is a whole expression becomes the value itself",
      }),
    ),
    ...anyStep,
  },
  { additionalProperties: false, description: "Runs a task" },
);

const StepSchema = Type.Union([CommandStepSchema, TaskStepSchema], {
  description: "run: a command, or task: a task with its input",
});

/** Editors get the step's shape once, shape.ts tells its two kinds apart. */
const StepRef = Type.Unsafe<Static<typeof StepSchema>>({ $ref: "#/$defs/step" });

const steps = (least: number, description: string): TArray<typeof StepRef> =>
  Type.Array(StepRef, {
    minItems: least,
    maxItems: MAX_PLAN_STEPS,
    description,
    errorMessage: `expected a list of ${least === 0 ? "" : `at least ${least} and `}at most ${MAX_PLAN_STEPS} steps`,
  });

export const PlanSchema = Type.Object(
  {
    $schema: Type.Optional(
      text("the address of a JSON Schema", { description: "For editors; it means nothing here" }),
    ),
    name: text(NAME_RULE, {
      pattern: NAME,
      description: "Names the plan on the command line",
      examples: ["rename-logger"],
    }),
    description: Type.Optional(
      text(`text, at most ${MAX_DESCRIPTION_CHARS} characters`, {
        maxLength: MAX_DESCRIPTION_CHARS,
        description: "What it is for, for people",
      }),
    ),
    workspace: Type.Optional(
      text(`a folder, at most ${MAX_PATH_BYTES} characters`, {
        ...oneLine(MAX_PATH_BYTES),
        description:
          "The git repository that it works on, relative to this file; default: that of the current folder",
        examples: ["../service"],
      }),
    ),
    base: Type.Optional(
      Type.Enum(["head", "working-tree"], {
        default: "head",
        description:
          "What execute starts from: the last commit, or the files as they lie there (ignored ones apart)",
        errorMessage: "expected head or working-tree",
      }),
    ),
    env: Type.Optional(Env),
    timeout: Type.Optional(duration("a phase")),
    execute: steps(1, "Run in a working tree of their own; what they change becomes the patch"),
    apply: Type.Optional(steps(0, "Run in the workspace once the patch is on it")),
  },
  { additionalProperties: false, errorMessage: "expected a plan: name and execute" },
);

/** A plan that a program makes. */
export type PlanObject = Static<typeof PlanSchema>;

/** What schemas/plan.schema.json holds: JSON Schema, draft 2020-12. */
export function planJsonSchema(): Record<string, unknown> {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A Jobtable plan",
    description: "Steps that change a git repository: execute makes a patch, apply puts it on",
    ...PlanSchema,
    $defs: { step: StepSchema },
  };
}
