/** From nothing to a result with what `jobtable init` says. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Process, run, scratch } from "./server.js";

test("the task that init writes runs with the two commands that it says", async () => {
  const cwd = scratch();
  const { code, stdout } = await run(["init", "my tasks"], { cwd });
  expect(code).toBe(0);
  expect(stdout).toContain("wrote my tasks/hello.ts\n");
  expect(stdout).toContain("  $ jobtable serve 'my tasks/hello.ts'\n");
  expect(stdout).toContain(
    `  $ jobtable submit hello --input '{"name": "Ada", "seconds": 3}' --wait\n`,
  );
  const server = new Process(["serve", "my tasks/hello.ts", "--port", "0"], { cwd });
  await server.says(/^jobtable listening on /m);
  const input = '{"name": "Ada", "seconds": 0}';
  const done = await run(["submit", "hello", "--input", input, "--wait", "--json"], { cwd });
  expect(done).toMatchObject({ code: 0, stderr: "" });
  expect(JSON.parse(done.stdout)).toMatchObject({ data: { greeting: "Hello, Ada!" } });
  // A second one ends as soon as it is told to, in the middle of its thinking.
  const long = await run(["submit", "hello", "--input", '{"seconds": 3000}'], { cwd });
  const id = long.stdout.trim();
  const follower = new Process(["jobs", "show", id, "--follow"], { cwd });
  await follower.says(/ running after .*\{"second":\d+,"of":3000\}\n/);
  expect((await run(["jobs", "cancel", id], { cwd })).code).toBe(0);
  await follower.says(/ cancelled after /);
  expect((await follower.ended).code).toBe(1);
});

test("init writes over nothing", async () => {
  const cwd = scratch();
  const { stdout } = await run(["init", "--json"], { cwd });
  expect(JSON.parse(stdout)).toMatchObject({ file: "tasks/hello.ts" });
  writeFileSync(join(cwd, "tasks/hello.ts"), "mine");
  expect(await run(["init"], { cwd })).toMatchObject({
    code: 2,
    stdout: "",
    stderr:
      "jobtable: tasks/hello.ts: it is there already, and stays as it is; name another folder\n",
  });
  expect(readFileSync(join(cwd, "tasks/hello.ts"), "utf8")).toBe("mine");
  writeFileSync(join(cwd, "file"), "");
  expect((await run(["init", "file/below"], { cwd })).code).toBe(2);
});

test("a broken configuration does not keep init and completion from working", async () => {
  const cwd = scratch();
  writeFileSync(join(cwd, "jobtable.config.json"), "{");
  expect((await run(["init"], { cwd })).code).toBe(0);
  expect(existsSync(join(cwd, "tasks/hello.ts"))).toBe(true);
  const { code, stdout } = await run(["completion", "bash"], { cwd });
  expect(code).toBe(0);
  expect(stdout).toMatch(/^# bash completion for jobtable\n/);
  expect(await run(["completion", "ksh"], { cwd })).toMatchObject({ code: 2, stdout: "" });
  expect(await run(["config"], { cwd })).toMatchObject({
    code: 2,
    stderr: "jobtable: config file jobtable.config.json:1:2: Expected property name or '}'\n",
  });
});

test("a config file in TypeScript finds defineConfig wherever it lies", async () => {
  const cwd = scratch();
  writeFileSync(
    join(cwd, "jobtable.config.ts"),
    'import { defineConfig } from "jobtable";\nexport default defineConfig({ max_workers: 7 });\n',
  );
  const { code, stdout, stderr } = await run(["config", "--json"], { cwd });
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  expect(JSON.parse(stdout)).toMatchObject({
    max_workers: { value: 7, origin: "jobtable.config.ts" },
  });
  writeFileSync(join(cwd, "jobtable.config.toml"), "max_workers = 8\n");
  expect(await run(["config"], { cwd })).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(
      /^jobtable: two config files: jobtable\.config\.ts and jobtable\.config\.toml; /,
    ) as string,
  });
});
