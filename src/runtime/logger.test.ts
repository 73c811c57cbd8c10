import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { expect, onTestFinished, test } from "vitest";

const LOGGER = new URL("../../dist/runtime/logger.js", import.meta.url).href;

/** Logs, also what it caught, as a server does; ends with the number of faults that nobody caught. */
const PROGRAM = `
  import { setImmediate } from "node:timers/promises";
  import { createLogger } from ${JSON.stringify(LOGGER)};
  const logger = createLogger("info");
  let faults = 0;
  process.on("uncaughtException", (err) => {
    faults += 1;
    logger.error({ err }, "uncaught fault");
  });
  for (let turn = 0; turn < 200; turn += 1) {
    logger.info({ turn }, "stopping");
    await setImmediate();
  }
  logger.info({}, "one");
  logger.info({}, "and another one at the end");
  process.exit(Math.min(faults, 100));
`;

test("standard error that can't be written is no fault, and holds up no end", async () => {
  const readOnly = openSync(devNull, "r");
  const child = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM], {
    stdio: ["ignore", "inherit", readOnly],
  });
  closeSync(readOnly);
  onTestFinished(() => void child.kill("SIGKILL"));
  expect(await once(child, "exit")).toEqual([0, null]);
});
