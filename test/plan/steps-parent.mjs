// A process of its own that runs steps, for steps-parent.test.ts: node steps-parent.mjs DIST ROLE
// FOLDER STEPS. It writes one line of JSON for each step that has ended.
import { closeSync, mkdirSync, openSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, role, folder, steps] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(dist, file)).href);
const { runSteps } = await load("plan/steps/run-steps.js");
const { planFromObject } = await load("plan/file/from-object.js");
const { systemClock } = await load("runtime/clock.js");
const { silentLogger } = await load("runtime/logger.js");

const say = (value) => writeSync(1, `${JSON.stringify(value)}\n`);
mkdirSync(join(folder, "scratch"), { recursive: true });
const plan = planFromObject({ name: "p", execute: JSON.parse(steps) });
const run = (stepEnded) =>
  runSteps({
    steps: plan.execute,
    plan: { name: plan.name, phase: "execute", env: {} },
    dir: folder,
    env: process.env,
    signal: new AbortController().signal,
    clock: systemClock,
    logger: silentLogger,
    graceMs: 60_000,
    tasks: { run: () => Promise.reject(new Error("no tasks here")) },
    listener: { stepStarted: () => {}, stepWrote: () => {}, stepEnded },
    scratch: join(folder, "scratch"),
  });

const roles = {
  /** Until it is killed. */
  run: () => run(({ index, state }) => say({ index, state })),

  /** With no file left to open, then with one more each time: each part of the start fails once. */
  async crowded() {
    const openFiles = () => readdirSync("/dev/fd").length;
    await run(() => {});
    const before = openFiles();
    const held = [];
    try {
      for (;;) held.push(openSync("/dev/null", "r"));
    } catch (error) {
      say({ full: error.code });
    }
    for (let free = 0; free < 28; free += 1) {
      await run(({ state, errorMessage }) => say({ state, errorMessage }));
      closeSync(held.pop());
    }
    for (const file of held) closeSync(file);
    say({ leaked: openFiles() - before });
  },
};
await roles[role]();
