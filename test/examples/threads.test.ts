/** The example tasks as a server runs them: loaded from their folder, in threads. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { createInlineRunner } from "../../src/engine/runner/inline-runner.js";
import type { Run, RunOutcome, Runner } from "../../src/engine/runner/runner.js";
import { createThreadRunner } from "../../src/engine/runner/thread-runner.js";
import { encodePayload } from "../../src/job/payload.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { loadTasks } from "../../src/task/load-tasks.js";
import type { RegisteredTask } from "../../src/task/registry.js";
import { SILENT, startRun } from "../started-run.js";

// Tesseract loads within a second, and within ten on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

const examples = join(import.meta.dirname, "../../examples");
let tasks: RegisteredTask[] = [];
const threads = createThreadRunner({ maxThreads: 1, logger: silentLogger });
const inline = createInlineRunner({ clock: systemClock });

beforeAll(async () => {
  tasks = await loadTasks([join(examples, "tasks")]);
});
afterAll(async () => {
  await Promise.all([threads.close(), inline.close()]);
});

function start(name: string, input: unknown, onProgress: (json: string) => void = () => undefined) {
  const task = tasks.find((known) => known.name === name);
  if (task === undefined) throw new Error(`no task ${name}`);
  const runner: Runner = task.isolation === "thread" ? threads : inline;
  const request = { jobId: null, attempt: 1, task, requestId: null };
  const payloadJson = encodePayload(name, JSON.stringify(input));
  return startRun(runner, { ...request, payloadJson }, { ...SILENT, onProgress });
}

/** Starts a run and does `act` to it as soon as it reports `word`. */
async function interrupted(
  name: string,
  input: unknown,
  word: string,
  act: (run: Run) => void,
): Promise<RunOutcome> {
  let reached: () => void = () => undefined;
  const reports = new Promise<void>((resolve) => {
    reached = resolve;
  });
  const run = start(name, input, (json) => {
    if (json.includes(word)) reached();
  });
  await Promise.race([reports, run.outcome]);
  act(run);
  return run.outcome;
}

function resultOf(outcome: RunOutcome): unknown {
  if (outcome.kind !== "succeeded") throw new Error(JSON.stringify(outcome));
  return JSON.parse(outcome.resultJson);
}

const image = (name: string): { img_data: string } => ({
  img_data: readFileSync(join(examples, "images", name)).toString("base64"),
});

it("finds the tasks, and leaves out what they are made of", () => {
  const shown = tasks.map(({ name, isolation }) => `${name} ${isolation}`);
  expect(shown).toEqual(["file-digest inline", "ocr thread", "primes thread"]);
});

it("reads an image, refuses a damaged one, and reads again in the same thread", async () => {
  expect(resultOf(await start("ocr", image("receipt.png")).outcome)).toMatchObject({
    text: expect.stringContaining("TOTAL 16.55") as string,
  });
  const cut = image("page.png").img_data.slice(0, 4_000);
  expect(await start("ocr", { img_data: cut }).outcome).toMatchObject({
    kind: "failed",
    errorMessage: "ImageUnreadable: it is cut off, damaged or of an unknown kind",
  });
  const seen: string[] = [];
  const again = start("ocr", image("sign.jpg"), (json) => seen.push(json));
  expect(JSON.stringify(resultOf(await again.outcome))).toContain("PLATFORM 7");
  expect(seen.join()).not.toContain("loading");
});

it("stops reading when it is told to, and reads the next", async () => {
  const stopped = await interrupted("ocr", image("page.png"), "recognizing", (run) =>
    run.abort("cancelled"),
  );
  expect(stopped).toMatchObject({ kind: "failed" });
  expect(resultOf(await start("ocr", image("sign.jpg")).outcome)).toBeDefined();
});

it("is killed while it reads, and the next run gets a new thread", async () => {
  const killed = await interrupted("ocr", image("page.png"), "recognizing", (run) => run.kill());
  expect(killed).toEqual({ kind: "killed" });
  expect(resultOf(await start("ocr", image("sign.jpg")).outcome)).toBeDefined();
});

it("counts primes, and stops when it is told to", async () => {
  expect(resultOf(await start("primes", { up_to: 1_000_000 }).outcome)).toMatchObject({
    primes: 78_498,
  });
  const endless = { up_to: 100_000_000_000 };
  const stopped = await interrupted("primes", endless, "primes", (run) => run.abort("cancelled"));
  expect(stopped).toMatchObject({ kind: "failed" });
});

it("digests a file in the process", async () => {
  const { outcome } = start("file-digest", { path: "images/page.png" });
  expect(resultOf(await outcome)).toMatchObject({ path: "images/page.png", bytes: 13_219 });
});

it.each([
  ["ocr", "TOTAL 16.55"],
  ["file-digest", "sha256"],
  ["primes", "664579"],
])("the ready input for %s is one", async (name, answer) => {
  const input = readFileSync(join(examples, "requests", `${name}.json`), "utf8");
  const { outcome } = start(name, JSON.parse(input));
  expect(JSON.stringify(resultOf(await outcome))).toContain(answer);
});
