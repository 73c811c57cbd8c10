/** The built server with plans over HTTP, from the first use on the command line to the files. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Scratch } from "../plan/scratch.js";
import { run, serve } from "./server.js";

test("a plan is executed, looked at and applied by a server that was told to", async () => {
  const scratch = new Scratch();
  onTestFinished(() => scratch.remove());
  const root = scratch.repository("app", { "a.txt": "one\n" });
  const plan = { name: "edit", workspace: root, execute: [{ run: "echo two >> a.txt" }] };
  scratch.write(scratch.path("edit.json"), JSON.stringify(plan));
  const at = { cwd: scratch.dir };
  expect(await run(["plan", "execute", "edit.json"], at)).toMatchObject({ code: 0 });

  const server = await serve(["--plans-over-http"], at);
  const execute = await server.call("POST", "/plans/edit/execute");
  expect(execute.status).toBe(202);
  expect(await server.ended(String(execute.json["job_id"]))).toMatchObject({
    state: "done",
    task: "plan:execute",
  });
  const diff = await fetch(`${server.url}/plans/edit/diff`);
  expect(diff.headers.get("content-type")).toBe("text/x-diff");
  expect(await diff.text()).toContain("\n+two\n");
  const apply = await server.call("POST", "/plans/edit/apply");
  expect(await server.ended(String(apply.json["job_id"]))).toMatchObject({ state: "done" });
  expect(readFileSync(join(root, "a.txt"), "utf8")).toBe("one\ntwo\n");
  expect((await server.call("POST", "/plans/edit/apply")).status).toBe(409);

  const without = await serve([], at);
  expect((await without.call("POST", "/plans/edit/execute")).status).toBe(404);
});
