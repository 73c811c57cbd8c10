/**
 * Installs the package as a user would: what was built, packed, into an empty folder, with its
 * dependencies from the registry. Then serves a task that the user wrote in TypeScript and asks it,
 * by hand and with the client. `npm run check` does this in CI only. The binary of better-sqlite3 is
 * this checkout's, where it is of the same version: compiling it once more would take minutes.
 */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = mkdtempSync(join(tmpdir(), "jobtable-pack-"));
const npm = (args, cwd) =>
  execFileSync("npm", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] });

const TASK = `import { task } from "jobtable";

export default task<{ name: string }, string>({
  run: ({ name }, ctx) => \`Hello, \${name}, on attempt \${ctx.attempt}\`,
});
`;
/** Checked as TypeScript, and run as it is. */
const ASK = `import { hasEnded, JobtableClient } from "jobtable/client";

export async function ask(/** @type {string} */ server) {
  const client = new JobtableClient({ server });
  const answer = await client.submit({ task: "hello", input: { name: "Grace" } });
  if (answer.kind === "refused") return answer.message;
  let job = await client.get(answer.jobId);
  while (job !== null && !hasEnded(job)) job = await client.wait(answer.jobId, 30_000);
  const result = await client.result(answer.jobId);
  return result.kind === "done" ? result.envelopeJson : result.kind;
}
`;
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    module: "nodenext",
    target: "es2023",
    types: [],
    checkJs: true,
    noEmit: true,
  },
  include: ["tasks", "ask.js"],
};

function install() {
  // Without `prepack`, which would take away dist/ from those who work with it meanwhile.
  const [{ filename, files }] = JSON.parse(
    npm(["pack", "--ignore-scripts", "--json", "--pack-destination", folder], root),
  );
  const paths = files.map(({ path }) => path);
  for (const needed of [
    "dist/cli/main.js",
    "dist/index.d.ts",
    "dist/client.d.ts",
    "schemas/plan.schema.json",
    "LICENSE",
    "CHANGELOG.md",
  ])
    assert.ok(paths.includes(needed), `${needed} is not in the package`);
  assert.deepEqual(
    paths.filter((path) => /\.test\.|^(src|test|bench)\//.test(path)),
    [],
  );
  const manifest = { private: true, type: "module", allowScripts: { "better-sqlite3": true } };
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  npm(
    ["install", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund", `./${filename}`],
    folder,
  );
  placeBinary();
}

function placeBinary() {
  const [from, to] = [root, folder].map((place) => join(place, "node_modules/better-sqlite3"));
  const versionOf = (at) => JSON.parse(readFileSync(join(at, "package.json"), "utf8")).version;
  const binary = "build/Release/better_sqlite3.node";
  if (existsSync(join(from, binary)) && versionOf(from) === versionOf(to))
    cpSync(join(from, binary), join(to, binary));
  else npm(["rebuild", "better-sqlite3"], folder);
}

async function serveAndAsk() {
  const main = join(folder, "node_modules/jobtable/dist/cli/main.js");
  const args = [main, "serve", "tasks/hello.ts", "--port", "0"];
  const server = spawn(process.execPath, args, {
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    const lines = createInterface({ input: server.stdout });
    const [first] = await once(lines, "line");
    const [, url] = /^jobtable listening on (\S+)$/.exec(first) ?? [];
    assert.ok(url, `no address in: ${first}`);
    const post = (path) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"name": "Ada"}',
      });
    const { job_id: jobId } = await (await post("/jobs")).json();
    await fetch(`${url}/jobs/${jobId}/wait?timeout=30000`);
    const result = await (await fetch(`${url}/jobs/${jobId}/result`)).json();
    assert.equal(result.data, "Hello, Ada, on attempt 1");
    assert.equal((await (await post("/tasks/hello")).json()).code, 0);
    const { ask } = await import(pathToFileURL(join(folder, "ask.js")).href);
    assert.equal(JSON.parse(await ask(url)).data, "Hello, Grace, on attempt 1");
  } finally {
    server.kill("SIGTERM");
  }
  const [code] = await once(server, "close");
  assert.equal(code, 0);
}

try {
  install();
  mkdirSync(join(folder, "tasks"));
  writeFileSync(join(folder, "tasks/hello.ts"), TASK);
  writeFileSync(join(folder, "ask.js"), ASK);
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(TSCONFIG));
  execFileSync(join(root, "node_modules/.bin/tsc"), ["-p", folder], { stdio: "inherit" });
  await serveAndAsk();
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
