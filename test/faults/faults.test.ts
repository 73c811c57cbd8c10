/**
 * The fault runs in brief, with a few hundred jobs each. The moments of their faults are counted in
 * jobs that have ended, so every run has them, however fast the machine is. `npm run faults` has the
 * long ones.
 */
import { expect, test, vi } from "vitest";
import { report } from "./report.js";
import { run } from "./run.js";
import type { Scenario, Shape } from "./scenario.js";
import { disk } from "./scenarios/disk.js";
import { everything } from "./scenarios/everything.js";
import { killed } from "./scenarios/killed.js";
import { paused } from "./scenarios/paused.js";
import { restarted } from "./scenarios/restarted.js";
import { SmallDisk } from "./stores/small-disk.js";
import type { StoreKind } from "./stores/store.js";

vi.setConfig({ testTimeout: 600_000 });

const BRIEF = { jobs: 300, waiters: 60, shellJobs: 1, seed: 1, brief: true } as const;
/** Few processes: each takes most of a second to start. */
const SMALL: Partial<Shape> = { workers: 2, servers: 1, slots: 4, bound: 120 };

async function expectBalance(
  scenario: Scenario,
  kind: StoreKind,
  shape: Partial<Shape> = {},
): Promise<void> {
  const small = { ...scenario, shape: { ...scenario.shape, ...SMALL, ...shape } };
  const outcome = await run({ scenario: small, kind, ...BRIEF });
  expect(outcome.faults, report(outcome)).toEqual([]);
  expect(outcome.accepted).toBe(BRIEF.jobs);
}

test.each([
  // Of two servers, one goes on when the other is killed.
  { scenario: killed, kind: "sqlite", shape: { servers: 2 } },
  { scenario: paused, kind: "sqlite" },
  { scenario: restarted, kind: "postgres" },
  { scenario: everything, kind: "postgres", shape: { servers: 2 } },
] as const)("$scenario.name: the books balance on $kind", async ({ scenario, kind, ...rest }) => {
  await expectBalance(scenario, kind, "shape" in rest ? rest.shape : {});
});

test("disk: the books balance on sqlite where a disk can be mounted, or it is said why none can", async () => {
  const lacking = SmallDisk.lacking();
  if (lacking === null) await expectBalance(disk, "sqlite");
  else expect(lacking).not.toBe("");
});
