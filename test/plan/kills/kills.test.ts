/** Plans killed with -9 at random moments, in brief; `npm run kills` has the long form. */
import { expect, test } from "vitest";
import { killPlans } from "./run.js";

test("a workspace is untouched or fully changed after every kill, and nothing is left behind", async () => {
  const { faults, kills, met } = await killPlans({ kills: 3, seed: 11 });
  expect(faults).toEqual([]);
  expect(kills.execute + kills.apply).toBe(3);
  expect(met).toBeGreaterThan(0);
}, 300_000);
