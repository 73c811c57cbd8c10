import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  applied,
  deadOwner,
  isGone,
  owner,
  patchOf,
  workspaceAt,
} from "../../test/plan/applying.js";
import { gitView, Scratch } from "../../test/plan/scratch.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import type { Ledger } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { silentLogger } from "../runtime/logger.js";
import { readOutcome, type PhaseOutcome } from "./outcome.js";
import { recoverAndNote, type RecoveredPorts } from "./recovered.js";

const PLAN = "01J0000000000000000000000P";
const EXECUTE = "01J0000000000000000000000E";
const APPLY = "01J0000000000000000000000A";

let scratch: Scratch;
let ledger: Ledger;
beforeEach(async () => {
  scratch = new Scratch();
  ledger = openMemoryLedger({ clock: new VirtualClock() });
  await ledger.plans.use({ planId: PLAN, name: "p", workspace: "/w", file: null });
  const definitionJson = JSON.stringify({ name: "p" });
  for (const [jobId, phase] of [
    [EXECUTE, "execute"],
    [APPLY, "apply"],
  ] as const)
    await ledger.plans.begin({ jobId, planId: PLAN, phase, definitionJson });
});
afterEach(() => {
  scratch.remove();
});

function ports(): RecoveredPorts {
  return { ledger, clock: new VirtualClock(), logger: silentLogger };
}

async function outcomeOf(jobId: string): Promise<PhaseOutcome | null> {
  const json = (await ledger.plans.run(jobId))?.outcomeJson ?? null;
  return json === null ? null : readOutcome(json);
}

async function record(jobId: string, outcome: Partial<PhaseOutcome>): Promise<void> {
  const whole = { status: "succeeded", startedAtMs: 1, finishedAtMs: 2, errorMessage: null };
  const outcomeJson = JSON.stringify({ ...whole, files: [], notes: [], ...outcome });
  await ledger.plans.finish({ jobId, outcomeJson });
}

const FAILED = { status: "failed", errorMessage: "Error: EIO" } as const;

test.each([
  { name: "says so where the process died before it could", known: null },
  { name: "says so where its process had taken it for failed", known: FAILED },
])("an apply that was committed $name", async ({ known }) => {
  const root = scratch.repository("r", { a: "1\n" });
  const { patch, files } = await patchOf(scratch, root, (dir) =>
    writeFileSync(join(dir, "a"), "2\n"),
  );
  await record(EXECUTE, { files });
  const workspace = await workspaceAt(scratch, root);
  const there = await applied(workspace, patch, APPLY);
  // As one that is killed, or whose store is away, between its commit point and its record.
  await there.commit(() => Promise.reject(new Error("cut short")));
  if (known !== null) await record(APPLY, known);
  const seen = gitView(root);
  await recoverAndNote(ports(), workspace, { owner, isGone });
  expect(await outcomeOf(APPLY)).toMatchObject({
    status: "succeeded",
    errorMessage: null,
    executeJobId: EXECUTE,
    files: [{ path: "a", change: "modified" }],
  });
  expect(gitView(root)).toEqual(seen);
  expect(await workspace.recover({ owner, isGone })).toEqual([]);
});

test("while the store does not answer the journal stays, and the next one notes it", async () => {
  const root = scratch.repository("r", { a: "1\n" });
  const { patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "2\n"));
  await record(EXECUTE, {});
  const workspace = await workspaceAt(scratch, root);
  await (await applied(workspace, patch, APPLY)).commit(() => Promise.reject(new Error("cut")));
  const away = {
    ...ledger,
    plans: { ...ledger.plans, run: () => Promise.reject(new Error("away")) },
  };
  const failing = recoverAndNote({ ...ports(), ledger: away }, workspace, { owner, isGone });
  await expect(failing).rejects.toThrow("away");
  expect(await outcomeOf(APPLY)).toBeNull();
  await recoverAndNote(ports(), workspace, { owner, isGone });
  expect(await outcomeOf(APPLY)).toMatchObject({ status: "succeeded" });
});

test("one that was committed and is another store's waits for that, for a week", async () => {
  const root = scratch.repository("r", { a: "1\n" });
  const { patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "2\n"));
  await record(EXECUTE, {});
  const workspace = await workspaceAt(scratch, root);
  await (await applied(workspace, patch, APPLY)).commit(() => Promise.reject(new Error("cut")));
  const elsewhere = openMemoryLedger({ clock: new VirtualClock() });
  const sweep = (nowMs: number): Promise<void> => {
    const clock = new VirtualClock(nowMs);
    return recoverAndNote({ ...ports(), ledger: elsewhere, clock }, workspace, { owner, isGone });
  };
  const journal = join(root, ".git/jobtable/applies", APPLY);
  const { mtimeMs } = statSync(join(journal, "committed.json"));
  await sweep(mtimeMs + 6 * DAY_MS);
  await recoverAndNote(ports(), workspace, { owner, isGone });
  expect(await outcomeOf(APPLY)).toMatchObject({ status: "succeeded" });
  expect(existsSync(journal)).toBe(false);

  const { patch: more } = await patchOf(scratch, root, (dir) =>
    writeFileSync(join(dir, "a"), "3\n"),
  );
  await (await applied(workspace, more, APPLY)).commit(() => Promise.reject(new Error("cut")));
  await sweep(statSync(join(journal, "committed.json")).mtimeMs + 8 * DAY_MS);
  expect(existsSync(journal)).toBe(false);
});

const DAY_MS = 24 * 3_600_000;

test("one that was taken back and is another store's waits for nobody", async () => {
  const root = scratch.repository("r", { a: "1\n" });
  const { patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "2\n"));
  const workspace = await workspaceAt(scratch, root);
  await workspace.apply(patch, { id: "a1", owner: deadOwner(), isGone });
  await expect(workspace.requireSettled({ isGone })).rejects.toThrow("was cut short");
  await recoverAndNote(ports(), workspace, { owner, isGone });
  expect(existsSync(join(root, ".git/jobtable/applies/a1"))).toBe(false);
  await workspace.requireSettled({ isGone });
});

test("what a process was killed in the middle of removing is removed", async () => {
  const root = scratch.repository("r", { a: "1\n" });
  const workspace = await workspaceAt(scratch, root);
  scratch.write(join(root, ".git/jobtable/trash/old/before/1"), "1\n");
  await recoverAndNote(ports(), workspace, { owner, isGone });
  expect(existsSync(join(root, ".git/jobtable/trash"))).toBe(false);
});

test("an apply that was cut short before is taken back, and says so", async () => {
  const root = scratch.repository("r", { a: "1\n" });
  const before = gitView(root);
  const { patch } = await patchOf(scratch, root, (dir) => writeFileSync(join(dir, "a"), "2\n"));
  await record(EXECUTE, {});
  const workspace = await workspaceAt(scratch, root);
  const dead = await workspace.apply(patch, { id: APPLY, owner: deadOwner(), isGone });
  expect(dead.kind).toBe("applied");
  await recoverAndNote(ports(), workspace, { owner, isGone });
  expect(gitView(root)).toEqual(before);
  expect(await outcomeOf(APPLY)).toMatchObject({
    status: "failed",
    errorMessage: "WorkerLost: the apply was cut short and taken back",
  });
});
