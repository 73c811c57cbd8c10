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
  for (let line = 0; line < 9; line += 1) logger.info({ line }, "at the end");
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

const AT_ONCE = `
  import { createLogger } from ${JSON.stringify(LOGGER)};
  const logger = createLogger("info");
  for (let line = 0; line < 5_000; line += 1) logger.info({ line }, "é".repeat(100));
  process.exit(0);
`;

test("nor does one whose reader is gone; nothing is lost to one who reads, up to the end", async () => {
  const args = ["--input-type=module", "-e", AT_ONCE];
  const start = () => spawn(process.execPath, args, { stdio: ["ignore", "inherit", "pipe"] });
  const [deaf, heard] = [start(), start()];
  onTestFinished(() => {
    for (const child of [deaf, heard]) child.kill("SIGKILL");
  });
  deaf.stderr.destroy();
  let text = "";
  heard.stderr.setEncoding("utf8").on("data", (more: string) => (text += more));
  const ends = await Promise.all([once(deaf, "close"), once(heard, "close")]);
  expect(ends).toEqual([
    [0, null],
    [0, null],
  ]);
  const lines = text.trim().split("\n");
  expect(lines.map((line) => (JSON.parse(line) as { line: number }).line)).toEqual(
    Array.from({ length: 5_000 }, (_, line) => line),
  );
});
