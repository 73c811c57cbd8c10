/**
 * Applies a patch with the built package, and kills itself right before its n-th change of files.
 * Arguments: workspace, patch file, n, environment of git as JSON.
 */
import { readFileSync } from "node:fs";
import { systemFiles } from "../../dist/plan/apply/files.js";
import { openWorkspace } from "../../dist/plan/workspace/workspace.js";
import { systemClock } from "../../dist/runtime/clock.js";
import { systemProcesses } from "../../dist/runtime/process-identity.js";

const [root, patch, last, env] = process.argv.slice(2);
const looks = ["stat", "readLink", "list", "read", "facts"];
let changes = 0;
const files = Object.fromEntries(
  Object.entries(systemFiles).map(([name, act]) => [
    name,
    (...args) => {
      if (!looks.includes(name)) changes += 1;
      if (changes === Number(last)) process.kill(process.pid, "SIGKILL");
      return act(...args);
    },
  ]),
);
const { self: owner, isGone } = systemProcesses();
const workspace = await openWorkspace(root, { env: JSON.parse(env), clock: systemClock, files });
const result = await workspace.apply(readFileSync(patch), { id: "a1", owner, isGone });
await result.applied.commit();
