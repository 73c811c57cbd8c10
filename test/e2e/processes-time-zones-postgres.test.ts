/** Processes and a database that each think to be somewhere else: time is the same everywhere. */
import { randomBytes } from "node:crypto";
import { expect, inject, onTestFinished, test } from "vitest";
import { openAdmin } from "../ledger/postgres-factory.js";
import { run, scratch, serve, worker } from "./server.js";

/** Off by half hours, and by more than a day between the two ends. */
const ZONES = {
  database: "America/St_Johns",
  server: "Asia/Kathmandu",
  worker: "Pacific/Kiritimati",
  sweeper: "Etc/GMT+12",
  shell: "Australia/Lord_Howe",
} as const;
const DELAY_MS = 1_000;
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
/** Less than the smallest difference between two zones, a quarter of an hour. */
const SAME_MS = 5 * 60_000;

const STORES = { sqlite: () => Promise.resolve("sqlite:jobs.db"), postgres: oddDatabase } as const;

test.each(Object.entries(STORES))(
  "%s: jobs start when they are due, and nobody is lost or late",
  async (_, newStore) => {
    const cwd = scratch();
    const store = await newStore();
    const args = ["--store", store, "--worker-timeout", "1s", "--async-timeout", "5m"];
    const server = await serve([...args, "--no-worker"], { cwd, env: { TZ: ZONES.server } });
    await worker(args, { cwd, env: { TZ: ZONES.worker } });
    const held = await server.submit({ hold: true });
    await server.until(held, "running");
    const sweeper = await worker(args, { cwd, env: { TZ: ZONES.sweeper } });
    const delayed = await server.submit({ say: "later" }, { delay_ms: DELAY_MS });
    const seen = await server.ended(delayed);
    expect(seen).toMatchObject({ state: "done" });
    const [created, started, finished] = ["created_at", "started_at", "finished_at"].map((name) => {
      expect(seen[name]).toMatch(UTC);
      return Date.parse(String(seen[name]));
    }) as [number, number, number];
    expect(started - created).toBeGreaterThanOrEqual(DELAY_MS);
    expect(finished).toBeGreaterThanOrEqual(started);
    expect(Math.abs(finished - Date.now())).toBeLessThan(SAME_MS);
    expect(seen["elapsed_ms"]).toBe(finished - created);

    // The sweeper has been round by now, more than once.
    const age = async (): Promise<unknown> =>
      (await server.call("GET", `/jobs/${held}`)).json["elapsed_ms"];
    await expect.poll(age, { timeout: 30_000 }).toBeGreaterThan(3_000);
    expect((await server.call("GET", `/jobs/${held}`)).json).toMatchObject({
      state: "running",
      attempt: 1,
    });
    expect(sweeper.stderr).not.toContain("lost");
    const shell = { cwd, env: { TZ: ZONES.shell } };
    const { stdout } = await run(["diagnostics", "--json", ...args.slice(0, 4)], shell);
    const { workers } = JSON.parse(stdout) as {
      workers: { state: string; last_heartbeat: string }[];
    };
    expect(workers.map(({ state }) => state)).toEqual(["running", "running"]);
    for (const { last_heartbeat: beat } of workers)
      expect(Math.abs(Date.parse(beat) - Date.now())).toBeLessThan(SAME_MS);
  },
);

/** A database whose sessions begin in another zone and write dates as nobody expects. It goes when the test has ended. */
async function oddDatabase(): Promise<string> {
  const server = inject("postgresUrl");
  const name = `test_${randomBytes(6).toString("hex")}`;
  const admin = await openAdmin(server);
  onTestFinished(async () => {
    await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await admin.end();
  });
  await admin.query(`CREATE DATABASE ${name}`);
  for (const setting of [
    `timezone TO '${ZONES.database}'`,
    "datestyle TO 'SQL, DMY'",
    "intervalstyle TO 'sql_standard'",
  ])
    await admin.query(`ALTER DATABASE ${name} SET ${setting}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}
