import { spawnSync } from "node:child_process";
import { beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import { encodePlanPayload, PLAN_TASKS, PLAN_VERSION } from "../job/payload.js";
import type { Ledger } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { systemProcesses, type ProcessIdentity } from "../runtime/process-identity.js";
import { holderEnds } from "./holder-ends.js";

const PLAN = "01J0000000000000000000000P";
const JOB = "01J0000000000000000000000A";
const processes = systemProcesses();
const elsewhere: ProcessIdentity = { ...processes.self, host: "container/b/pid:[1]/", pid: 1 };

let ledger: Ledger;
beforeEach(async () => {
  ledger = openMemoryLedger({ clock: new VirtualClock() });
  await ledger.plans.use({ planId: PLAN, name: "p", workspace: "/w", file: null });
});

async function submit(): Promise<void> {
  await ledger.plans.begin({ jobId: JOB, planId: PLAN, phase: "apply", definitionJson: "{}" });
  const job = {
    jobId: JOB,
    planId: PLAN,
    phase: "apply",
    task: PLAN_TASKS.apply,
    schemaVersion: PLAN_VERSION,
    payloadJson: encodePlanPayload(PLAN, "apply"),
    timeoutMs: null,
  } as const;
  await ledger.submit([job], { maxDepth: 10 });
}

function isOver(owner: ProcessIdentity, purpose = JOB): Promise<boolean> | undefined {
  return holderEnds(ledger, processes).isOver?.({ owner, purpose });
}

test("whom nobody can see is over once its job has ended, and not before", async () => {
  await submit();
  expect(await isOver(elsewhere)).toBe(false);
  await ledger.cancel([JOB]);
  expect(await isOver(elsewhere)).toBe(true);
});

test("who is known to run is never over, whatever became of its job", async () => {
  await submit();
  await ledger.cancel([JOB]);
  const isKnown = processes.self.pidStamp !== "";
  expect(await isOver(processes.self)).toBe(!isKnown);
  expect(await isOver({ ...processes.self, pid: spawnSync("true").pid })).toBe(true);
});

test("whose job is forgotten is over; whose job another store has is not", async () => {
  expect(await isOver(elsewhere)).toBe(false);
  await ledger.plans.begin({ jobId: JOB, planId: PLAN, phase: "apply", definitionJson: "{}" });
  expect(await isOver(elsewhere)).toBe(true);
  expect(await isOver(elsewhere, "recovery")).toBe(false);
});

test("who ran before the machine was restarted is gone: what it left is a file of this machine", () => {
  const before = { ...processes, wasRestarted: (other: ProcessIdentity) => other === elsewhere };
  expect(holderEnds(ledger, before).isGone(elsewhere)).toBe(true);
  expect(holderEnds(ledger, processes).isGone(elsewhere)).toBe(false);
});
