/** Plans through the built command line: in place, as jobs of a worker, and what is refused. */
import { spawnSync } from "node:child_process";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Process, run, scratch, type Output } from "./server.js";

const SAMPLES = resolve(import.meta.dirname, "../../examples/plans");
const ASYNC = "--async-enabled";

/** A store, the sample workspaces, and commands on them whose temporary files are seen. */
class Desk {
  readonly cwd = scratch();
  readonly tmp = join(this.cwd, "tmp");
  readonly options = {
    cwd: this.cwd,
    env: { JOBTABLE_STORE: "sqlite:jobs.db", TMPDIR: this.tmp },
  };

  constructor({ samples = true }: { samples?: boolean } = {}) {
    mkdirSync(this.tmp);
    if (samples) shell(this.cwd, `sh ${SAMPLES}/prepare.sh .`);
  }

  plan(...args: string[]): Promise<Output> {
    return run(["plan", ...args], this.options);
  }

  async json(...args: string[]): Promise<Record<string, unknown>> {
    const { stdout } = await this.plan(...args, "--json");
    return JSON.parse(stdout) as Record<string, unknown>;
  }

  start(...args: string[]): Process {
    return new Process(args, this.options);
  }

  async worker(...args: string[]): Promise<Process> {
    const started = this.start("worker", ...args);
    await started.says(/ready$/m);
    return started;
  }

  /** A repository with a plan of these steps in it, given as YAML. */
  repository(plan: string, files: Readonly<Record<string, string>> = {}): string {
    mkdirSync(join(this.cwd, "repo"));
    for (const [name, text] of Object.entries({ "plan.yaml": plan, ...files }))
      writeFileSync(join(this.cwd, "repo", name), text);
    shell(this.cwd, `git init -q repo; cd repo; git add -A; ${COMMIT}`);
    return "repo/plan.yaml";
  }

  status(repository: string): string {
    return shell(this.cwd, `git -C ${repository} status --porcelain`);
  }

  /** Sandboxes, work trees, journals and scratch folders that are still there. */
  get leftovers(): string[] {
    const below = (folder: string): string[] =>
      existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
    const repositories = ["repo", "codemod", "ocr"].map((name) => join(this.cwd, name, ".git"));
    const sandboxes = below(this.tmp).flatMap((folder) =>
      /jobtable-\d+$/.test(folder) ? below(join(folder, "sandboxes")) : [folder],
    );
    return [
      ...sandboxes.filter((path) => !path.includes("node-compile-cache")),
      ...repositories.flatMap((git) => below(join(git, "worktrees"))),
      ...repositories.flatMap((git) => below(join(git, "jobtable/applies"))),
    ];
  }
}

const COMMIT = "git -c user.name=u -c user.email=u@localhost commit -q -m commit";

function shell(cwd: string, command: string): string {
  const { status, stdout, stderr } = spawnSync("sh", ["-e", "-c", command], {
    cwd,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`${command}: ${stderr}`);
  return stdout;
}

/** The one line that a command says when it is refused. */
function complaint({ stderr }: Pick<Output, "stderr">): string {
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  return stderr.trimEnd();
}

/** Whether it still runs; one that nobody has asked about since its end does not. */
function isAlive(pid: number): boolean {
  const { stdout } = spawnSync("ps", ["-o", "stat=", "-p", String(pid)], { encoding: "utf8" });
  return /^[^Z\s]/.test(stdout);
}

test("the codemod in place: execute, look, check, apply, and not twice", async () => {
  const desk = new Desk();
  const executed = await desk.plan("execute", "codemod/plan.yaml");
  expect(executed).toMatchObject({ code: 0, stderr: "" });
  expect(executed.stdout).toContain("src/stock.js: 2 calls");
  expect(executed.stdout).toContain("2 files changed, +3 -3");
  expect(desk.status("codemod")).toBe("");
  const { stdout: patch } = await desk.plan("diff", "rename-warning");
  writeFileSync(join(desk.cwd, "patch"), patch);
  shell(desk.cwd, "git -C codemod apply --check ../patch");
  expect(await desk.plan("apply", "rename-warning", "--check")).toMatchObject({ code: 0 });
  expect(desk.status("codemod")).toBe("");
  expect(await desk.plan("apply", "codemod/plan.yaml")).toMatchObject({ code: 0, stderr: "" });
  expect(shell(desk.cwd, "git -C codemod diff --full-index")).toBe(patch);
  const again = await desk.plan("apply", "rename-warning");
  expect(again.code).toBe(1);
  expect(complaint(again)).toMatch(/nothing to apply: its patch was applied by job_\w{26} already/);
  const view = await desk.json("show", "rename-warning");
  expect(view).toMatchObject({ name: "rename-warning" });
  expect((await desk.plan("list")).stdout).toMatch(/rename-warning +done +done/);
  expect(desk.leftovers).toEqual([]);
});

test("as a job: held while it waits, by file, name and id, and its file may change or go", async () => {
  const desk = new Desk();
  const first = await desk.plan("execute", "codemod/plan.yaml", ASYNC);
  const jobId = first.stdout.trim();
  expect(jobId).toMatch(/^job_\w{26}$/);
  const file = join(desk.cwd, "codemod/plan.yaml");
  appendFileSync(file, "broken: yes\n");
  rmSync(file);
  for (const deed of ["execute", "apply"]) {
    const held = await desk.plan(deed, "rename-warning");
    expect(held.code).toBe(1);
    expect(complaint(held)).toContain(`execute is pending as ${jobId}`);
  }
  expect((await desk.plan("show", "codemod/plan.yaml")).stdout).toContain("execute: pending");
  await desk.worker();
  expect(await run(["jobs", "wait", jobId], desk.options)).toMatchObject({ code: 0 });
  // Its file is gone: it is what it was.
  expect(await desk.plan("execute", "rename-warning", ASYNC, "--wait")).toMatchObject({ code: 0 });
  const view = await desk.json("show", "rename-warning");
  const followed = await desk.plan("apply", String(view["plan_id"]), ASYNC, "--follow");
  expect(followed).toMatchObject({ code: 0, stderr: "" });
  expect(followed.stdout).toContain("# pass 1");
  expect(desk.status("codemod")).toContain(" M src/stock.js");
});

test("what is not as it seems is told on standard error: edited steps, an old patch", async () => {
  const desk = new Desk({ samples: false });
  const plan = (apply: string): string =>
    `name: edit\nworkspace: .\nexecute:\n  - run: echo 2 > a\napply:\n  - run: echo ${apply}\n`;
  const file = desk.repository(plan("old"), { a: "1\n" });
  expect(await desk.plan("execute", file)).toMatchObject({ code: 0, stderr: "" });
  expect(await desk.plan("diff", file)).toMatchObject({ code: 0, stderr: "" });
  writeFileSync(join(desk.cwd, file), plan("new"));
  for (const flag of ["--wait", "--follow", ASYNC]) {
    const refused = await desk.plan("apply", file, "--check", flag);
    expect([refused.code, complaint(refused).includes(`${flag}: --check`)]).toEqual([2, true]);
  }
  const applied = await desk.plan("apply", file);
  expect([applied.code, /^old$/m.test(applied.stdout)]).toEqual([0, true]);
  expect(complaint(applied)).toMatch(/plan\.yaml has other steps of apply by now/);
  const looked = await desk.plan("diff", "edit");
  expect(looked.stdout).toMatch(/^diff --git/);
  expect(complaint(looked)).toMatch(/this patch, of job_\w{26}, was applied by job_\w{26}$/);
});

test("a workspace on another disk, with a submodule, is executed and applied; the submodule is left alone", async () => {
  const desk = new Desk({ samples: false });
  desk.repository("name: inner\nexecute:\n  - run: 'true'\n");
  const far = mkdtempSync("/dev/shm/jobtable-e2e-");
  onTestFinished(() => {
    rmSync(far, { recursive: true });
  });
  const plan = "name: far\nworkspace: .\nexecute:\n  - run: ls sub; echo 2 > a\n";
  writeFileSync(join(far, "plan.yaml"), plan);
  writeFileSync(join(far, "a"), "1\n");
  const add = `git -c protocol.file.allow=always submodule --quiet add ${desk.cwd}/repo sub`;
  shell(far, `git init -q .; ${add}; git add -A; ${COMMIT}`);
  const executed = await desk.plan("execute", join(far, "plan.yaml"));
  expect(executed).toMatchObject({ code: 0, stderr: "" });
  expect((await desk.plan("show", "far")).stdout).toContain('the submodule "sub" is empty here');
  expect(await desk.plan("apply", "far")).toMatchObject({ code: 0, stderr: "" });
  expect(shell(far, "git status --porcelain")).toBe(" M a\n");
  expect(readdirSync(join(far, "sub"))).toContain("plan.yaml");
  expect(desk.leftovers).toEqual([]);
});

const HOLD = "sleep 300 & echo $! $$; wait";

describe.each([
  { where: "Ctrl-C in place", async: false },
  { where: "plan cancel from another process", async: true },
])("$where", ({ async }) => {
  test("ends the steps of an apply, takes the patch back, and leaves nothing running", async () => {
    const desk = new Desk({ samples: false });
    const steps = `name: hold\nworkspace: .\nexecute:\n  - run: echo 2 > a\napply:\n  - run: ${HOLD}\n`;
    const file = desk.repository(steps, { a: "1\n" });
    expect(await desk.plan("execute", file)).toMatchObject({ code: 0 });
    if (async) await desk.worker();
    const applying = desk.start("plan", "apply", "hold", ...(async ? [ASYNC, "--follow"] : []));
    const [, background, foreground] = await applying.says(/^(\d+) (\d+)$/m);
    expect(desk.status("repo")).toBe(" M a\n");
    if (async) expect(await desk.plan("cancel", "hold")).toMatchObject({ code: 0 });
    else applying.kill("SIGINT");
    expect(await applying.ended).toEqual({ code: 1, signal: null });
    expect(complaint(applying)).toContain("plan hold: apply cancelled");
    expect([Number(background), Number(foreground)].filter(isAlive)).toEqual([]);
    expect(desk.status("repo")).toBe("");
    expect(desk.leftovers).toEqual([]);
    expect(await desk.json("show", "hold")).toMatchObject({ apply: { state: "cancelled" } });
  });
});

test("a step that writes 200 MB, one that leaves a process, and one that never ends", async () => {
  const desk = new Desk({ samples: false });
  const file = desk.repository(
    "name: hard\nworkspace: .\nexecute:\n  - run: head -c 200000000 /dev/zero | tr '\\0' x\n" +
      "  - run: sleep 300 & echo $!\n  - run: sleep 300\n    timeout: 1s\n",
  );
  await desk.worker();
  const ended = await desk.plan("execute", file, ASYNC, "--wait");
  expect(ended).toMatchObject({ code: 1, stdout: "" });
  expect(complaint(ended)).toContain("step 3 of 3 (sleep 300): TimeLimit");
  const { stdout } = await desk.plan("show", "hard", "--logs");
  expect(stdout.length).toBeLessThan(400_000);
  expect(/\d+ bytes left out/.test(stdout)).toBe(true);
  const pid = Number(/^(\d+)$/m.exec(stdout)?.[1]);
  expect(isAlive(pid)).toBe(false);
  expect(stdout.includes("timeout")).toBe(true);
  expect(desk.leftovers).toEqual([]);
});

describe("what can't be used is told in one line, and leaves nothing", () => {
  test("a folder that is no repository, a file that is not there or no plan, a plan of no one", async () => {
    const desk = new Desk({ samples: false });
    const file = "name: x\nworkspace: .\nexecute:\n  - run: 'true'\n";
    writeFileSync(join(desk.cwd, "plan.yaml"), file);
    writeFileSync(join(desk.cwd, "bad.yaml"), "name: x\nworkspace: .\nexecute: 3\n");
    for (const [asked, code, why] of [
      ["plan.yaml", 2, /git/],
      ["missing.yaml", 2, /missing\.yaml/],
      ["bad.yaml", 2, /bad\.yaml:3:10/],
      ["nobody", 1, /plan not found: nobody/],
    ] as const) {
      const refused = await desk.plan("execute", asked);
      expect([refused.code, refused.stdout]).toEqual([code, ""]);
      expect(complaint(refused)).toMatch(why);
    }
    expect(desk.leftovers).toEqual([]);
  });

  test("a link that leads out, made by a step; and odd names pass", async () => {
    const desk = new Desk({ samples: false });
    const odd = "a \"b\" 'c'\nd";
    const file = desk.repository(
      'name: odd\nworkspace: .\nbase: working-tree\nexecute:\n  - run: for f in a*; do echo more >> "$f"; done\n',
      { [odd]: "1\n" },
    );
    writeFileSync(join(desk.cwd, "repo/untracked"), "dirty\n");
    expect(await desk.plan("execute", file)).toMatchObject({ code: 0, stderr: "" });
    expect(await desk.plan("apply", file)).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(join(desk.cwd, "repo", odd), "utf8")).toBe("1\nmore\n");
    writeFileSync(
      join(desk.cwd, "repo/plan.yaml"),
      "name: out\nworkspace: .\nexecute:\n  - run: ln -s /etc/passwd x\n",
    );
    const refused = await desk.plan("execute", file);
    expect(refused.code).toBe(1);
    expect(complaint(refused)).toContain('"x"');
    symlinkSync("/etc", join(desk.cwd, "repo/out"));
    shell(desk.cwd, `cd repo; git add out; ${COMMIT}`);
    const atStart = await desk.plan("execute", file);
    expect(atStart.code).toBe(1);
    expect(complaint(atStart)).toContain('"out"');
    expect(desk.leftovers).toEqual([]);
  });

  test("a store that is out of reach", async () => {
    const desk = new Desk({ samples: false });
    const file = desk.repository("name: x\nworkspace: .\nexecute:\n  - run: 'true'\n");
    const refused = await desk.plan("execute", file, "--store", "postgres://localhost:1/none");
    expect([refused.code, refused.stdout]).toEqual([3, ""]);
    complaint(refused);
  });
});
