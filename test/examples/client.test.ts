/** The example of a client, against a server that runs the example task. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { countPrimes } from "../../examples/client.js";
import { ClientError, JobtableClient } from "../../src/client.js";
import { createEngine } from "../../src/engine/engine.js";
import { createHttpApp } from "../../src/http/app.js";
import { createMetrics } from "../../src/http/metrics.js";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { loadTasks } from "../../src/task/load-tasks.js";
import { createTaskRegistry } from "../../src/task/registry.js";
import { SETTINGS } from "../engine-rig.js";

const root = join(import.meta.dirname, "../..");
let url = "";
let close: () => Promise<void> = async () => undefined;

beforeAll(async () => {
  const tasks = createTaskRegistry(await loadTasks([join(root, "examples/tasks/primes.ts")]));
  const ledger = openMemoryLedger({ clock: systemClock });
  const ports = { ledger, tasks, settings: SETTINGS, logger: silentLogger, worker: true };
  const engine = createEngine(ports);
  const app = createHttpApp({
    tasks,
    engine: () => engine,
    logger: silentLogger,
    metrics: createMetrics({ tasks: tasks.names, processMetrics: false }),
    settings: {
      asyncEnabled: true,
      authToken: null,
      requestSizeLimitBytes: 10_000,
      defaultTask: null,
    },
  });
  await engine.start();
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  close = async () => {
    await engine.stop();
    await app.close();
    await ledger.close();
  };
});
afterAll(() => close());

it("counts what the server counts, and sent again it is the same job", async () => {
  expect(await countPrimes(url, 1_000_000)).toBe(78_498);
  expect(await countPrimes(url, 1_000_000)).toBe(78_498);
  const { jobs } = await new JobtableClient({ server: url }).list({ limit: 10 });
  expect(jobs).toMatchObject([{ state: "done", idempotency_key: "primes up to 1000000" }]);
});

it("is told why not", async () => {
  await expect(countPrimes(url, -1)).rejects.toThrow(/invalid input.*up_to/);
  expect(() => new JobtableClient({ server: "127.0.0.1:8202" })).toThrow(ClientError);
});

it("is the one in docs/library.md", () => {
  const example = readFileSync(join(root, "examples/client.ts"), "utf8");
  const page = readFileSync(join(root, "docs/library.md"), "utf8");
  expect(page).toContain(`\`\`\`ts\n${example.slice(example.indexOf("import"))}\`\`\`\n`);
});
