#!/usr/bin/env node
/**
 * Where the process begins and the only place that ends it. It ends when the command has answered,
 * whatever still runs: a handler that ignores its signal must not hold up a shutdown.
 */
import { processEnvironment } from "../config.js";
import { keepAlive } from "../runtime/keep-alive.js";
import { runCommandLine } from "./program.js";
import { createTerminal } from "./terminal.js";

const release = keepAlive();
const terminal = createTerminal(process, processEnvironment(), process);
const code = await runCommandLine(process.argv.slice(2), {
  terminal,
  exit: (at) => process.exit(at),
});
await terminal.flush();
release();
process.exit(code);
