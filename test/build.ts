/**
 * Builds dist/ once before the tests: threads and end-to-end tests run what users run.
 * JOBTABLE_TEST_BUILT says that whoever starts the tests has just done so.
 */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";

export default function setup(): void {
  if (process.env["JOBTABLE_TEST_BUILT"]) return;
  const script = resolve(import.meta.dirname, "../scripts/build.mjs");
  const { status } = spawnSync(process.execPath, [script], { stdio: "inherit" });
  if (status !== 0) throw new Error("the build failed; see the compiler's messages above");
}
