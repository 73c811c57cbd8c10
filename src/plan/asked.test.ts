/** Which plan a text means, on real files and repositories. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Scratch } from "../../test/plan/scratch.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import { MAX_PATH_BYTES } from "../job/limits.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import type { Ledger } from "../ledger/ledger.js";
import { systemClock } from "../runtime/clock.js";
import { idSource, systemRandom } from "../runtime/random.js";
import { editedSince, findAsked, readAsked, readObject, type PlansHere } from "./asked.js";
import { systemProcesses } from "../runtime/process-identity.js";
import { Plans } from "./plans.js";

let scratch: Scratch;
let root: string;
let ledger: Ledger;
let here: PlansHere;

beforeEach(() => {
  scratch = new Scratch();
  root = scratch.repository("app", { "a.txt": "one\n" });
  const clock = new VirtualClock();
  ledger = openMemoryLedger({ clock });
  const self = { host: "here", pid: 1, pidStamp: "" };
  const newId = idSource(clock, systemRandom());
  const processes = { ...systemProcesses(), self, isGone: () => false };
  const plans = new Plans({ ledger, newId, asyncMaxQueue: 16, processes });
  here = { plans, host: { env: { ...process.env }, clock: systemClock } };
});
afterEach(async () => {
  await ledger.close();
  scratch.remove();
});

/** Writes the file of a plan. */
function file(path: string, changes: object = {}): string {
  const plan = { name: "tidy", workspace: root, execute: [{ run: "true" }], ...changes };
  scratch.write(path, JSON.stringify(plan));
  return path;
}

/** Executes it to its end. */
async function executed(asked: string): Promise<string> {
  const outcome = await here.plans.execute(await readAsked(here, asked, root));
  if (outcome.kind !== "started") throw new Error(outcome.kind);
  const { jobId, task } = outcome.job;
  const worker = { workerId: "worker-00000000", attempt: 1 };
  await ledger.claim({ workerId: worker.workerId, tasks: [task], limit: 1 });
  const written = { status: "succeeded", startedAtMs: 1, finishedAtMs: 2, errorMessage: null };
  const outcomeJson = JSON.stringify({ ...written, files: [], notes: [] });
  await ledger.plans.finish({ jobId, outcomeJson, patch: new Uint8Array(1) });
  await ledger.settle([{ jobId, ...worker, end: { event: "succeed", resultJson: "{}" } }]);
  return outcome.plan.planId;
}

describe("a text", () => {
  test("is the plan of that name or id, also where a file is called so", async () => {
    const path = file(join(root, "tidy.yaml"), { name: "asked.test.ts" });
    const planId = await executed(path);
    // There is a file of this name, and it is no plan.
    const folder = process.cwd();
    process.chdir(import.meta.dirname);
    try {
      expect(await findAsked(here, "asked.test.ts", root)).toMatchObject({ planId });
      expect((await readAsked(here, "asked.test.ts", root)).file).toBe(path);
      await expect(findAsked(here, "./asked.test.ts", root)).rejects.toThrow("asked.test.ts:");
    } finally {
      process.chdir(folder);
    }
    expect(await findAsked(here, `plan_${planId}`, root)).toMatchObject({ planId });
  });

  test("is a file where no plan has that name, and told where nothing is there", async () => {
    const path = file(join(root, "tidy.yaml"));
    await expect(findAsked(here, path, root)).rejects.toThrow("plan not found: tidy");
    const planId = await executed(path);
    expect(await findAsked(here, path, root)).toMatchObject({ planId });
    await expect(findAsked(here, "nobody", root)).rejects.toThrow("plan not found: nobody");
    await expect(findAsked(here, "nobody.yaml", root)).rejects.toThrow("nobody.yaml");
  });

  test("is the plan that was last used from a file that is gone or broken by now", async () => {
    const path = file(join(root, "tidy.yaml"));
    const planId = await executed(path);
    for (const change of [() => scratch.write(path, "name: ["), () => rmSync(path)]) {
      change();
      expect(await findAsked(here, path, root)).toMatchObject({ planId });
      await expect(readAsked(here, path, root)).rejects.toThrow("tidy.yaml");
    }
    await expect(findAsked(here, join(root, "other.yaml"), root)).rejects.toThrow("other.yaml");
  });
});

test("an apply is told of a file that was edited since the execute, or is no plan any more", async () => {
  const path = file(join(root, "tidy.yaml"), { apply: [{ run: "make" }] });
  await executed(path);
  const plan = await here.plans.find("tidy");
  expect(await editedSince(here, plan)).toBeNull();
  file(path, { apply: [{ run: "make" }], description: "says more" });
  expect(await editedSince(here, plan)).toBeNull();
  file(path, { apply: [{ run: "make test" }] });
  expect(await editedSince(here, plan)).toBe("edited");
  file(path, { apply: [{ run: "make" }], env: { CI: "1" } });
  expect(await editedSince(here, plan)).toBe("edited");
  scratch.write(path, "name: [");
  expect(await editedSince(here, plan)).toBe("unreadable");
  // What is wrong with the workspace is told by the apply itself.
  file(path, { workspace: scratch.path("nowhere") });
  expect(await editedSince(here, plan)).toBeNull();
  rmSync(path);
  expect(await editedSince(here, plan)).toBeNull();
});

test("paths that are too long to be recorded are refused by name", async () => {
  const path = file(join(root, "tidy.yaml"), { workspace: `/${"x".repeat(MAX_PATH_BYTES)}` });
  await expect(readAsked(here, path, root)).rejects.toThrow("workspace: expected a folder");
  const folder = join(root, ...Array.from({ length: 10 }, () => "d".repeat(200)));
  const plan = { name: "tidy", execute: [{ run: "true" }] };
  const deep = file(join(folder, "tidy.yaml"));
  await expect(readAsked(here, deep, root)).rejects.toMatchObject({
    code: "invalid_plan",
    message: expect.stringMatching(/tidy\.yaml: its path is longer than 2000 bytes/) as string,
  });
  scratch.git(folder, "init", "-q");
  scratch.commit(folder);
  await expect(readObject(here, plan, folder)).rejects.toMatchObject({
    code: "invalid_workspace",
    message: expect.stringContaining("is longer than 2000 bytes") as string,
  });
});
