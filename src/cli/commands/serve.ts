/** `jobtable serve`: the HTTP API and, unless told otherwise, a worker in the same process. */
import type { Command } from "commander";
import { SETTING_NAMES } from "../../config/settings.js";
import { addVerb, type Runner } from "../verb.js";

export function addServe(program: Command, runner: Runner): void {
  addVerb(program, runner, {
    usage: "serve [tasks...]",
    summary: "Serve tasks over HTTP, and run their jobs",
    example: "jobtable serve tasks/ocr.ts --port 8202 --max-workers 4",
    settings: SETTING_NAMES.filter((name) => name !== "server"),
    // The server's modules are loaded only where they serve: other commands start faster without.
    run: async (invocation) => (await import("../serving.js")).serve(invocation),
  }).option("--no-worker", "only the API: other processes run the jobs");
}
