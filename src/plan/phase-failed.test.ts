import { hostname } from "node:os";
import { expect, test } from "vitest";
import { systemClock } from "../runtime/clock.js";
import { messageOf } from "./phase-failed.js";
import { openWorkspace } from "./workspace/workspace.js";

const host = { env: {}, clock: systemClock };

test("a workspace that is on another machine: this one is named, and what to do", async () => {
  const error: unknown = await openWorkspace("/nowhere/app", host).catch((fault: unknown) => fault);
  expect(messageOf(error)).toBe(
    `PlanRefused: the workspace "/nowhere/app" is not there on this machine (${hostname()}): workers that run plans need it under the same path; start the others with --plans=false`,
  );
});

test("one that is no folder is told as it is", async () => {
  const error: unknown = await openWorkspace("/dev/null", host).catch((fault: unknown) => fault);
  expect(messageOf(error)).toBe('PlanRefused: the workspace "/dev/null" is not a folder');
});
