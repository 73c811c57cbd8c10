/**
 * Builds dist/: compiles src/ and copies what is not TypeScript (the SQL). Exits with the
 * compiler's code. `--clean` empties dist/ first, so that a package holds nothing that src/ lost.
 */
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, rmSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = join(
  dirname(createRequire(import.meta.url).resolve("typescript/package.json")),
  "bin/tsc",
);

if (process.argv.includes("--clean")) rmSync(join(root, "dist"), { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json")], {
  cwd: root,
  stdio: "inherit",
});
cpSync(join(root, "src"), join(root, "dist"), {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || extname(path) === ".sql",
});
const main = join(root, "dist/cli/main.js");
if (existsSync(main)) chmodSync(main, 0o755);
process.exitCode = status ?? 1;
