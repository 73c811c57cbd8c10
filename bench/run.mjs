/**
 * Starts the benchmarks: installs what bench/ needs when its lockfile changed, makes JavaScript of
 * bench/src in bench/dist (types are checked by `npm run check`), and runs it. Plain JavaScript,
 * since the measured processes run on two versions of Node and must carry no loader.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";

const here = import.meta.dirname;

function install() {
  const lock = readFileSync(join(here, "package-lock.json"), "utf8");
  const stamp = join(here, "node_modules/.installed-lock.json");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  process.stderr.write("installing the peers ...\n");
  const { status } = spawnSync("npm", ["ci", "--silent", "--prefix", here], { stdio: "inherit" });
  if (status !== 0) throw new Error("npm ci in bench/ failed: run it by hand to see why");
  writeFileSync(stamp, lock);
}

function compile() {
  const from = join(here, "src");
  const to = join(here, "dist");
  rmSync(to, { recursive: true, force: true });
  for (const name of readdirSync(from, { recursive: true })) {
    const source = join(from, name);
    if (extname(name) !== ".ts" || name.endsWith(".test.ts")) continue;
    const target = join(to, name.replace(/\.ts$/, ".js"));
    mkdirSync(dirname(target), { recursive: true });
    const { outputText } = ts.transpileModule(readFileSync(source, "utf8"), {
      fileName: source,
      compilerOptions: {
        target: ts.ScriptTarget.ES2023,
        module: ts.ModuleKind.ESNext,
        verbatimModuleSyntax: true,
      },
    });
    writeFileSync(target, outputText);
  }
}

install();
compile();
await import(pathToFileURL(join(here, "dist/main.js")).href);
