/** Plans in the library, on a real repository; the code in docs is run as it stands there. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Scratch } from "../../test/plan/scratch.js";
import {
  createJobtable,
  createTestJobtable,
  task,
  type Job,
  type Jobtable,
  type JobtableOptions,
  type PlanObject,
  type PlanRef,
  type PlanStart,
} from "../index.js";

const count = task({ name: "count", run: ({ of }: { of: string }) => ({ letters: of.length }) });
type Tasks = readonly [typeof count];

// Each starts a few dozen processes of git, and the machine may be busy with others.
vi.setConfig({ testTimeout: 120_000 });

let scratch: Scratch;
let root: string;
const opened: Jobtable<Tasks>[] = [];

beforeEach(() => {
  scratch = new Scratch();
  root = scratch.repository("app", { "a.txt": "one\n", "motto.txt": "hello\n" });
});
afterEach(async () => {
  for (const jobtable of opened.splice(0)) await jobtable.stop();
  scratch.remove();
});

function open(options: Partial<JobtableOptions<Tasks>> = {}): Jobtable<Tasks> {
  const store = `sqlite:${scratch.path("jobs.db")}`;
  const jobtable = createJobtable<Tasks>({ store, plans: true, ...options, tasks: [count] });
  opened.push(jobtable);
  return jobtable;
}

function planOf(run: string): {
  name: string;
  workspace: string;
  execute: ({ run: string } | { task: string; input: unknown; id: string })[];
} {
  const counted = { task: "count", id: "count", input: { of: "${{ plan.name }}" } };
  return { name: "edit", workspace: root, execute: [counted, { run }] };
}

async function ended(jobtable: Jobtable<Tasks>, { kind, job }: PlanStart): Promise<string> {
  expect(kind).toBe("started");
  const last = await jobtable.wait(job, { timeoutMs: 25_000 });
  return `${last?.phase ?? ""} ${last?.status ?? ""}`;
}

test("an object is executed, looked at, checked and applied, with a task of the program's own", async () => {
  const jobtable = open();
  await jobtable.start();
  const { plans } = jobtable;
  expect(await ended(jobtable, await plans.execute(planOf("echo two >> a.txt")))).toBe(
    "execute succeeded",
  );
  const view = await plans.show("edit");
  expect(view.plan).toMatchObject({ name: "edit", workspace: root, file: null });
  expect(view.execute?.steps.map(({ state }) => state)).toEqual(["succeeded", "succeeded"]);
  expect(view.execute?.outcome?.files.map(({ path }) => path)).toEqual(["a.txt"]);
  expect(Buffer.from((await plans.diff(view.plan)) ?? []).toString()).toContain("\n+two\n");
  expect(await plans.check(view.plan)).toMatchObject({ fits: true, conflicts: [] });
  writeFileSync(join(root, "a.txt"), "other\n");
  const check = await plans.check("edit");
  expect([check.fits, check.conflicts[0]?.file]).toEqual([false, "a.txt"]);
  writeFileSync(join(root, "a.txt"), "one\n");
  expect(await ended(jobtable, await plans.apply(view.plan))).toBe("apply succeeded");
  expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("one\ntwo\n");
  await expect(plans.apply("edit")).rejects.toMatchObject({ code: "nothing_to_apply" });
  expect((await plans.list({ limit: 5 })).map(({ plan }) => plan.name)).toEqual(["edit"]);
  expect(await plans.cancel("edit")).toBeNull();
});

test("a file is read as it is now, by its path, name or id; gone, it runs as it was", async () => {
  const jobtable = open();
  await jobtable.start();
  const { plans } = jobtable;
  const file = scratch.path("edit.json");
  scratch.write(file, JSON.stringify(planOf("echo file > b.txt")));
  const first = await plans.execute(file);
  expect(await ended(jobtable, first)).toBe("execute succeeded");
  scratch.write(file, JSON.stringify(planOf("echo later > b.txt")));
  expect(await ended(jobtable, await plans.execute("edit"))).toBe("execute succeeded");
  expect(Buffer.from((await plans.diff(file)) ?? []).toString()).toContain("+later");
  // Another plan by now is none of ours.
  scratch.write(file, JSON.stringify({ ...planOf("echo other > b.txt"), name: "other" }));
  const again = await plans.execute({ planId: first.plan.planId });
  expect(again.plan.planId).toBe(first.plan.planId);
  expect(await ended(jobtable, again)).toBe("execute succeeded");
  expect(Buffer.from((await plans.diff("edit")) ?? []).toString()).toContain("+later");
});

test("without a worker for plans it records, one phase at a time and within the bound", async () => {
  const jobtable = open({ plans: false, asyncMaxQueue: 1 });
  const { plans } = jobtable;
  const first = await plans.execute(planOf("true"));
  expect(await plans.execute(planOf("true"))).toMatchObject({
    kind: "held",
    job: { jobId: first.job.jobId, status: "queued", task: "plan:execute" },
  });
  await expect(plans.execute({ ...planOf("true"), name: "second" })).rejects.toMatchObject({
    code: "queue_full",
  });
  expect(await plans.cancel("edit")).toMatchObject({ kind: "cancelled" });
  expect((await jobtable.get(first.job))?.status).toBe("cancelled");
});

test("what can't be is told by a code", async () => {
  const { plans } = open();
  const wrong = (code: string): object => expect.objectContaining({ code }) as object;
  await expect(plans.show("nowhere")).rejects.toEqual(wrong("unknown_plan"));
  await expect(plans.execute("./nowhere.yaml")).rejects.toEqual(wrong("invalid_plan"));
  await expect(plans.execute({ name: "x", execute: [] })).rejects.toEqual(wrong("invalid_plan"));
  await expect(
    plans.execute({ ...planOf("true"), workspace: scratch.path("home") }),
  ).rejects.toEqual(wrong("invalid_workspace"));
  await expect(plans.list({ limit: 0 })).rejects.toEqual(wrong("invalid_input"));
});

/** The first block of code after a heading, as a function of what it finds in scope. */
function docCode(page: string, heading: string): (...given: unknown[]) => Promise<void> {
  const text = readFileSync(new URL(`../../docs/${page}`, import.meta.url), "utf8");
  const [, code] = /```ts\n([\s\S]*?)```/.exec(text.slice(text.indexOf(heading))) ?? [];
  if (code === undefined) throw new Error(`${page}: no code after ${heading}`);
  // It is plain JavaScript. In a block of its own it may declare a jobtable of its own.
  const wrapped = `export default async (jobtable, createJobtable) => {{\n${code}\n}}`;
  return async (...given) => {
    const url = `data:text/javascript,${encodeURIComponent(wrapped)}`;
    const module = (await import(/* @vite-ignore */ url)) as {
      default: (...given: unknown[]) => Promise<void>;
    };
    await module.default(...given);
  };
}

test("the code of docs/library.md and docs/plans.md runs", async () => {
  const jobtable = open();
  await jobtable.start();
  const applied: (Job | null)[] = [];
  // Both name paths of their own, which lead here.
  const file = scratch.path("rename.json");
  scratch.write(file, JSON.stringify(planOf("echo two >> a.txt")));
  const here: object = {
    wait: jobtable.wait.bind(jobtable),
    start: async () => undefined,
    plans: {
      execute: (plan: unknown) =>
        jobtable.plans.execute(
          typeof plan === "string" ? file : { ...(plan as PlanObject), workspace: root },
        ),
      check: jobtable.plans.check.bind(jobtable.plans),
      diff: jobtable.plans.diff.bind(jobtable.plans),
      apply: async (plan: PlanRef) => {
        const { job } = await jobtable.plans.apply(plan);
        applied.push(await jobtable.wait(job, { timeoutMs: 25_000 }));
      },
    },
  };
  await docCode("library.md", "## Plans\n")(here);
  await docCode("plans.md", "## From a program\n")(null, () => here);
  expect(applied.map((job) => job?.status)).toEqual(["succeeded", "succeeded"]);
  expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("one\ntwo\n");
  expect(readFileSync(join(root, "loud.txt"), "utf8")).toBe("HELLO\n");
});

test("a test jobtable has none, and says so", async () => {
  const jobtable = createTestJobtable({ tasks: [count] });
  await expect(jobtable.plans.list()).rejects.toMatchObject({ code: "invalid_config" });
  await jobtable.stop();
});
