/** Builds dist/ once before the tests: threads and end-to-end tests run what users run. */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";

export default function setup(): void {
  const script = resolve(import.meta.dirname, "../scripts/build.mjs");
  const { status } = spawnSync(process.execPath, [script], { stdio: "inherit" });
  if (status !== 0) throw new Error("the build failed; see the compiler's messages above");
}
