import fc from "fast-check";
import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { InvalidPlan } from "./findings.js";
import { planFromObject } from "./from-object.js";
import { parsePlan, readPlanFile } from "./read.js";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "jobtable-plan-file-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

function invalid(error: unknown): InvalidPlan {
  if (error instanceof InvalidPlan) return error;
  throw error;
}

/** What is wrong with a text, without the file's name; empty where nothing is. */
function slips(text: string): string[] {
  try {
    parsePlan(text, { file: "p.yaml" });
    return [];
  } catch (error) {
    return invalid(error).lines.map((line) => line.replace(/^p\.yaml:/, ""));
  }
}

/** Of a plan whose only step has these lines. */
function stepSlips(...lines: string[]): string[] {
  return slips(`name: p\nexecute:\n  - ${lines.join("\n    ")}\n`);
}

describe("a plan file", () => {
  it("says all that a plan can", () => {
    const text = `
name: rename-logger
description: Renames the logger everywhere
workspace: ../service
base: working-tree
env: { VERSION: 1.10, DEBUG: True, HEX: 0x1F, HOME_OF: "\${{ workspace }}" }
timeout: 10m
execute:
  - id: find
    run: |

      grep -rl "$OLD" . | jq -R -s 'split("\\n")'
    shell: bash -euo pipefail  -c
    cwd: packages/api
    env: { OLD: "a $\${{ b" }
    timeout: 1.5s
    continue_on_error: true
  - task: rewrite
    name: Rewrite all of them
    id: rewrite
    input: { files: "\${{ steps.find.output }}", first: ["\${{ steps.find.output[0] }}", 1.5, null] }
apply:
  - run: echo '$\${{ x }}'
  - task: check
`;
    const plan = parsePlan(text, { file: "/plans/a/p.yaml" });
    expect(plan).toEqual({
      file: "/plans/a/p.yaml",
      name: "rename-logger",
      description: "Renames the logger everywhere",
      workspace: "/plans/service",
      base: "working-tree",
      env: { VERSION: "1.10", DEBUG: "True", HEX: "0x1F", HOME_OF: "${{ workspace }}" },
      timeoutMs: 600_000,
      execute: [
        {
          kind: "command",
          id: "find",
          name: `grep -rl "$OLD" . | jq -R -s 'split("\\n")'`,
          run: `\ngrep -rl "$OLD" . | jq -R -s 'split("\\n")'\n`,
          shell: ["bash", "-euo", "pipefail", "-c"],
          cwd: "packages/api",
          env: { OLD: "a $${{ b" },
          timeoutMs: 1_500,
          continueOnError: true,
        },
        {
          kind: "task",
          id: "rewrite",
          name: "Rewrite all of them",
          task: "rewrite",
          input: {
            files: "${{ steps.find.output }}",
            first: ["${{ steps.find.output[0] }}", 1.5, null],
          },
          timeoutMs: null,
          continueOnError: false,
        },
      ],
      apply: [
        {
          kind: "command",
          id: null,
          name: "echo '${{ x }}'",
          run: "echo '${{ x }}'",
          shell: ["sh", "-e", "-c"],
          cwd: ".",
          env: {},
          timeoutMs: null,
          continueOnError: false,
        },
        {
          kind: "task",
          id: null,
          name: "task check",
          task: "check",
          input: {},
          timeoutMs: null,
          continueOnError: false,
        },
      ],
    });
  });

  it("may be JSON, with tabs, a byte-order mark and a schema", () => {
    const text =
      '\uFEFF{\r\n\t"$schema": "x",\r\n\t"name": "p",\r\n\t"execute": [\r\n\t\t{"run": "a"}\r\n\t]\r\n}\r\n';
    expect(parsePlan(text, { file: "p.json" })).toMatchObject({ name: "p", workspace: null });
  });

  it("names a step after its command's first line, cut between letters", () => {
    const { execute } = planFromObject({ name: "p", execute: [{ run: `\n ${"😀".repeat(70)}` }] });
    expect(execute[0]?.name).toBe(`${"😀".repeat(59)}…`);
  });

  it("tells all that is wrong, in the order of the file, at most twenty", () => {
    const steps = Array.from({ length: 25 }, (_, index) => `  - rum: ${String(index)}\n`).join("");
    const error = invalid(thrown(`name: a b\nbase: tail\nexecute:\n${steps}`));
    expect(error.code).toBe("invalid_plan");
    expect(error.message).toBe(
      'p.yaml:1:7: name: expected letters, digits, "_", "-" and "." (first a letter or digit), at most 100, got "a b" (and 26 more)',
    );
    expect(error.lines).toHaveLength(20);
    expect(error.lines.slice(1, 3)).toEqual([
      'p.yaml:2:7: base: expected head or working-tree, got "tail"',
      'p.yaml:4:5: execute[0]: unknown key "rum"; did you mean run?',
    ]);
    expect(error.problems[2]).toEqual({
      path: "execute[0]",
      place: { line: 4, column: 5 },
      message: 'unknown key "rum"; did you mean run?',
    });
  });
});

function thrown(text: string): unknown {
  try {
    parsePlan(text, { file: "p.yaml" });
  } catch (error) {
    return error;
  }
  return null;
}

const STEPS = "expected a list of at least 1 and at most 200 steps";
const NAMES = "expected workspace, plan.name, or steps.ID with .stdout, .exit_code or .output";
const PASTED =
  'text that is pasted into a command may run as code: give it by env and use "$NAME", or write $${{ for the text ${{';

describe("the text of a plan file is refused", () => {
  it.each([
    ["", "1:1: this is empty: expected a plan, with name and execute"],
    ["# nothing\n---\n", "1:1: this is empty: expected a plan, with name and execute"],
    ["name: a\n---\nname: b\n", "2:1: here begins a second document; a file holds one plan"],
    ["name: a\nexecute:\n\t- run: x\n", "3:1: a tab can't indent: use blanks"],
    ["name: !x a\n", "1:7: a plan has no tags: Unresolved tag: !x"],
    ["name: !!binary YQ==\n", "1:7: a plan has no tags: Unresolved tag: tag:yaml.org,2002:binary"],
    ["%YAML 1.1\n---\nname: a\n", "1:1: a plan is YAML 1.2, not 1.1"],
    ["name: a: b\n", "1:7: this is no YAML: Nested mappings are not allowed in compact mappings"],
    [
      "env: { A: ${{ workspace }} }\n",
      "1:12: this is no YAML: Unexpected flow-map-start at node end; a text with ${{ }} that stands within { } or [ ] needs quotes",
    ],
    ["name: a\u0001\n", "1:8: the control character U+0001 is not allowed"],
    ["- a\n", "1:1: expected a plan: name and execute, got a list of 1"],
    ["plan\n", '1:1: expected a plan: name and execute, got "plan"'],
    [`a: ${"[".repeat(5_000)}`, "1:104: this is nested too deep for a plan"],
    ["- ".repeat(5_000), "1:401: this is nested too deep for a plan"],
    ["? ".repeat(5_000), "1:401: this is nested too deep for a plan"],
    [
      Array.from({ length: 500 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n"),
      "402:1: this is nested too deep for a plan",
    ],
    [
      `a: [${"0,".repeat(40_000)}]`,
      "1:66667: this is too long for a plan; put data into a file of its own",
    ],
  ])("%.20j", (text, line) => {
    expect(slips(text)).toEqual([line]);
  });

  it("whose aliases lead nowhere, or have no end", () => {
    expect(slips("name: p\nexecute: [{ run: *x }]\n")).toEqual(["2:18: there is no &x before *x"]);
    expect(stepSlips("task: t", "input: &x [1, [*x]]")).toEqual([
      "4:20: *x stands within &x itself",
    ]);
  });

  it("whose aliases would fill the memory", () => {
    const bomb = ["&a [x,x,x,x,x,x,x,x]"];
    for (const [last, next] of ["ab", "bc", "cd", "de", "ef", "fg"])
      bomb.push(
        `&${String(next)} [${Array(8)
          .fill(`*${String(last)}`)
          .join()}]`,
      );
    const [line = "", ...others] = stepSlips("task: t", `input: [${bomb.join()}]`);
    expect(line).toMatch(/^4:\d+: aliases repeat too much here; put data into a file of its own$/);
    expect(others).toEqual([]);
    const deep = Array.from({ length: 12 }, (_, level) => {
      const inner = level === 0 ? "1" : `*a${String(level - 1)}`;
      return `&a${String(level)} ${"[".repeat(50)}${inner}${"]".repeat(50)}`;
    });
    expect(stepSlips("task: t", "input:", ...deep.map((list) => `- ${list}`))).toContainEqual(
      expect.stringMatching(/this is nested too deep for a plan$/),
    );
  });

  it("and aliases that do no harm are values like all others", () => {
    const text = `name: p
execute:
  - { run: a, env: &env { A: &one 1.0, B: "x" } }
  - { run: b, env: *env }
  - { task: t, input: [*one, &one 2, *one] }
`;
    const { execute } = parsePlan(text, { file: "p.yaml" });
    expect(execute[1]).toMatchObject({ env: { A: "1.0", B: "x" } });
    expect(execute[2]).toMatchObject({ input: [1, 2, 2] });
  });
});

describe("the shape of a plan", () => {
  it.each([
    ["name: p\n", `1:1: execute is missing: ${STEPS}`],
    ["name: p\nexecute: []\n", `2:10: execute: ${STEPS}, got a list of 0`],
    ["name: p\nexecute:\n", `2:9: execute: ${STEPS}, got nothing`],
    [
      `name: p\nexecute:\n${"  - run: a\n".repeat(201)}`,
      `3:3: execute: ${STEPS}, got a list of 201`,
    ],
    [
      "name: p\nexecute: [{ run: a }]\napply: {}\n",
      "3:8: apply: expected a list of at most 200 steps, got a map",
    ],
    [
      "name: 1.0\nexecute: [{ run: a }]\n",
      '1:7: name: expected letters, digits, "_", "-" and "." (first a letter or digit), at most 100, got the number 1; quote it to make it text',
    ],
    ["name: p\nexecute: [{ run: a }]\nname: q\n", '3:1: the key "name" stands twice'],
    [
      "<<: { name: p }\nname: p\nexecute: [{ run: a }]\n",
      "1:1: merge keys (<<) are not part of YAML 1.2: write out what it stands for",
    ],
    ["name: p\n__proto__: {}\nexecute: [{ run: a }]\n", "2:1: __proto__ can't be a key"],
    ["name: p\n1: x\nexecute: [{ run: a }]\n", "2:1: a key must be text: quote it"],
    [
      "name: p\nexecutes: 1\nexecute: [{ run: a }]\n",
      '2:1: unknown key "executes"; did you mean execute?',
    ],
    [
      "name: p\nschedule: x\nexecute: [{ run: a }]\n",
      '2:1: unknown key "schedule"; known: name, description, workspace, base, env, timeout, execute, apply',
    ],
    [
      "name: p\nworkspace: ''\nexecute: [{ run: a }]\n",
      "2:12: workspace: expected a folder, at most 2000 characters, got an empty text",
    ],
    [
      "name: p\nworkspace: ${{ workspace }}\nexecute: [{ run: a }]\n",
      "2:12: workspace: expressions have no place here; write $${{ for the text ${{",
    ],
    [
      "name: p\ntimeout: 40d\nexecute: [{ run: a }]\n",
      "2:10: timeout: expected at most 30d, got 40d",
    ],
    [
      "name: p\nenv: { A: '${{ steps.a.stdout }}' }\nexecute: [{ run: a, id: a }]\n",
      "2:12: env.A: the plan's env is for all steps and knows none of them: put this into the env of a step",
    ],
  ])("%.30j", (text, line) => {
    expect(slips(text)).toEqual([line]);
  });

  it.each([
    [["just text"], '3:5: execute[0]: expected a step, which has run or task, got "just text"'],
    [["id: a"], "3:5: execute[0]: a step needs run (a command) or task (the name of a task)"],
    [["run: a", "task: b"], "4:5: execute[0]: a step has run or task, not both: make it two"],
    [
      ["run: a", "input: {}"],
      '4:5: execute[0]: unknown key "input"; known: run, shell, cwd, env, id, name, timeout, continue_on_error',
    ],
    [["run: ' '"], '3:10: execute[0].run: expected a command, at most 65536 characters, got " "'],
    [
      ["run: true"],
      "3:10: execute[0].run: expected a command, at most 65536 characters, got true; quote it to make it text",
    ],
    [['run: "a\\0"'], "3:10: execute[0].run: a NUL character can't be passed on"],
    [['run: "\\uD800"'], "3:10: execute[0].run: half of a surrogate pair can't be passed on"],
    [["run: x ${{ workspace }}"], `3:12: execute[0].run: ${PASTED}`],
    [["run: x ${{ oops"], `3:12: execute[0].run: ${PASTED}`],
    [["run: a", "shell: bash -c ${{ workspace }}"], `4:20: execute[0].shell: ${PASTED}`],
    [
      ["run: a", `shell: bash -c "exec"`],
      "4:12: execute[0].shell: quotes have no meaning here: expected words separated by blanks",
    ],
    [
      ["run: a", "cwd: /etc"],
      "4:10: execute[0].cwd: this leaves the working tree: expected a folder inside it, such as src",
    ],
    [
      ["run: a", "cwd: a/../../b"],
      "4:10: execute[0].cwd: this leaves the working tree: expected a folder inside it, such as src",
    ],
    [
      ["run: a", "cwd: ${{ steps.x.stdout }}"],
      "4:10: execute[0].cwd: no step of execute has the id x; none has one",
    ],
    [
      ["run: a", "timeout: 10"],
      "4:14: execute[0].timeout: expected a duration with its unit, such as 30s, 10m or 1h, got the number 10",
    ],
    [
      ["run: a", "timeout: 0s"],
      "4:14: execute[0].timeout: expected more than 0; leave it out where there is no limit",
    ],
    [
      ["run: a", "continue_on_error: yes"],
      '4:24: execute[0].continue_on_error: expected true or false, got "yes"',
    ],
    [
      ["run: a", 'name: "a\\nb"'],
      '4:11: execute[0].name: expected one line of text, at most 200 characters, got "a\\nb"',
    ],
    [
      ["run: a", "id: a.b"],
      '4:9: execute[0].id: expected letters, digits, "_" and "-" (first a letter or "_"), at most 100, got "a.b"',
    ],
    [
      ["run: a", "env: { GIT_DIR: x }"],
      '4:12: execute[0].env: "GIT_DIR" can\'t be set: variables that begin with GIT_ are reserved',
    ],
    [
      ["run: a", "env: { JOBTABLE_X: x }"],
      '4:12: execute[0].env: "JOBTABLE_X" can\'t be set: variables that begin with JOBTABLE_ are reserved',
    ],
    [
      ["run: a", "env: { CLEVERAGENTS_X: x }"],
      '4:12: execute[0].env: "CLEVERAGENTS_X" can\'t be set: variables that begin with CLEVERAGENTS_ are reserved',
    ],
    [
      ["run: a", "env: { a-b: x }"],
      '4:12: execute[0].env: "a-b" can\'t name a variable: expected letters, digits and _, no digit first',
    ],
    [
      ["run: a", "env: { A: }"],
      '4:15: execute[0].env.A: expected text (at most 65536 characters, "" for none), a number or a boolean, got nothing',
    ],
    [
      ["run: a", "env: []"],
      "4:10: execute[0].env: expected a map of at most 500 variables, KEY: value, got a list of 0",
    ],
    [
      ["task: a b"],
      '3:11: execute[0].task: expected the name of a task: letters, digits, "_", "-" and "." (first a letter or digit), at most 100, got "a b"',
    ],
    [
      ["task: t", "input: [.nan]"],
      "4:13: execute[0].input[0]: .nan is no number that can be kept as it is: quote it",
    ],
    [
      ["task: t", "input: 9007199254740993"],
      "4:12: execute[0].input: 9007199254740993 is no number that can be kept as it is: quote it",
    ],
    [
      ["task: t", "input: { a: ['${{ oops }}'] }"],
      `4:19: execute[0].input.a[0]: ${NAMES}, got "oops }}"`,
    ],
  ])("of a step: %j", (lines, line) => {
    expect(stepSlips(...lines)).toEqual([line]);
  });
});

describe("expressions", () => {
  const withEnv = (value: string): string[] =>
    slips(`name: p
execute:
  - { id: early, run: a }
  - { id: job, task: t }
  - id: self
    run: b
    env:
      A: |
        first
        ${value}
  - { id: late, run: c }
apply: [{ id: other, run: d }]
`).map((line) => line.replace(/ execute\[2\]\.env\.A:/, ""));

  it.each([
    ["${{ steps.early.stdout }} ${{ steps.job.output.a }} ${{ plan.name }}", undefined],
    [
      "$${{ ${{ steps.erly.stdout }}",
      "10:14: no step of execute has the id erly; did you mean early?",
    ],
    [
      "${{ steps.nothing.stdout }}",
      "10:9: no step of execute has the id nothing; known: early, job, self, late",
    ],
    [
      "${{ steps.late.stdout }}",
      "10:9: the step late comes later: only outputs of earlier steps are known",
    ],
    ["${{ steps.self.stdout }}", "10:9: a step does not know its own outputs"],
    [
      "${{ steps.other.stdout }}",
      "10:9: other is a step of apply: outputs don't reach from one phase into the other",
    ],
    ["${{ steps.job.stdout }}", "10:9: job is a task and has no stdout: use steps.job.output"],
    [
      "${{ steps.job.exit_code }}",
      "10:9: job is a task and has no exit_code: use steps.job.output",
    ],
  ])("%s", (value, line) => {
    expect(withEnv(value)).toEqual(line === undefined ? [] : [line]);
  });

  it("need ids that name one step", () => {
    expect(slips("name: p\nexecute:\n  - { id: a, run: x }\n  - { id: a, run: y }\n")).toEqual([
      "4:11: execute[1].id: execute[0] has the id a already: ids are unique within a phase",
    ]);
  });

  it("that are written with escapes are told at the text's begin", () => {
    expect(stepSlips("run: a", String.raw`env: { A: "x \u0024{{ oops }}" }`)).toEqual([
      `4:15: execute[0].env.A: ${NAMES}, got "oops }}"`,
    ]);
  });
});

describe("reading a file", () => {
  async function fileSlips(name: string, content: string | Uint8Array): Promise<string> {
    const path = join(folder, name);
    await writeFile(path, content);
    return readPlanFile(path).then(
      () => "",
      (error: unknown) => invalid(error).message.replace(`${path}:`, ""),
    );
  }

  it("takes its workspace from the file's own folder", async () => {
    await mkdir(join(folder, "plans"));
    const path = join(folder, "plans/p.yaml");
    await writeFile(path, "name: p\nworkspace: ../w\nexecute: [{ run: a }]\n");
    expect(await readPlanFile(path)).toMatchObject({ file: path, workspace: join(folder, "w") });
  });

  it("refuses what is no text of a plan's size", async () => {
    expect(await fileSlips("latin.yaml", Buffer.from("name: a\nx: caf\xE9s\n", "latin1"))).toBe(
      "2:7: this is not UTF-8: save the file as UTF-8",
    );
    expect(await fileSlips("cut.yaml", Buffer.from("name: é").subarray(0, -1))).toBe(
      "1:7: this is not UTF-8: save the file as UTF-8",
    );
    expect(await fileSlips("wide.yaml", Buffer.from("\uFEFFname: a", "utf16le"))).toBe(
      "1:1: this is not UTF-8: save the file as UTF-8",
    );
    expect(await fileSlips("large.yaml", `#${" ".repeat(1024 * 1024)}`)).toBe(
      " this is larger than 1 MiB, the most that a plan may be",
    );
  });

  it("refuses what is no file, without waiting for it", async () => {
    const pipe = join(folder, "pipe.yaml");
    expect(spawnSync("mkfifo", [pipe]).status).toBe(0);
    await expect(readPlanFile(pipe)).rejects.toThrow(`${pipe}: this is no regular file`);
    await expect(readPlanFile(folder)).rejects.toThrow(`${folder}: this is no regular file`);
    const gone = join(folder, "gone.yaml");
    await expect(readPlanFile(gone)).rejects.toThrow(`${gone}: there is no such file`);
  });
});

describe("a plan of a program", () => {
  it("is told by paths", () => {
    const steps = [
      { run: "a", env: { A: 1, __proto_: true } },
      { task: "t", input: "${{ x }}" },
    ];
    const error = (value: unknown): readonly string[] => {
      try {
        planFromObject(value);
        return [];
      } catch (cause) {
        return invalid(cause).lines;
      }
    };
    expect(error({ name: "p", execute: steps })).toEqual([
      `plan: execute[1].input: ${NAMES}, got "x }}"`,
    ]);
    expect(error({ name: "p", execute: [{ task: "t", input: { a: [new Map()] } }] })).toEqual([
      "plan: execute.0.input.a.0 is a Map",
    ]);
    expect(
      error(JSON.parse('{"name":"p","execute":[{"run":"a","env":{"__proto__":"x"}}]}')),
    ).toEqual([
      'plan: execute[0].env: "__proto__" can\'t name a variable: expected letters, digits and _, no digit first',
    ]);
    expect(error(null)).toEqual(["plan: expected a plan: name and execute, got nothing"]);
  });

  it("is the same as from its file", () => {
    const value = fc
      .jsonValue({ maxDepth: 3 })
      .map(
        (input) =>
          JSON.parse(
            JSON.stringify(input).replaceAll("${{", "{{").replaceAll("__proto__", "proto"),
          ) as unknown,
      );
    const env = fc.dictionary(
      fc.stringMatching(/^[A-FH-Z][a-z]{0,5}$/),
      fc.string().filter((text) => !text.includes("{{")),
    );
    fc.assert(
      fc.property(value, env, fc.stringMatching(/^[a-z ]*[a-z]$/), (input, variables, run) => {
        const plan = {
          name: "p",
          execute: [
            { run, env: variables },
            { task: "t", input },
          ],
        };
        const made = planFromObject(plan);
        for (const text of [JSON.stringify(plan), stringify(plan)])
          expect(parsePlan(text, { file: "p.yaml" })).toEqual({
            ...made,
            file: expect.any(String) as string,
          });
      }),
    );
  });
});
