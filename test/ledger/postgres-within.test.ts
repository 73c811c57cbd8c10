/** Submitting within a transaction of the caller's own: with its commit, or not at all. */
import type pg from "pg";
import { afterAll, afterEach, beforeEach, describe, expect, inject, test } from "vitest";
import type { SubmitOutcome } from "../../src/ledger/ledger.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { Bell, claim, look, newJob, newJobs, numbers, present, ROOMY, see } from "./acts.js";
import { keyed, told } from "./cases/idempotency.js";
import { newSchema, openAdmin, PostgresStores, type PostgresHarness } from "./postgres-factory.js";

const url = inject("postgresUrl");
const stores = new PostgresStores(url);
const clients: pg.Client[] = [];
let h: PostgresHarness;
let ledger: Awaited<ReturnType<typeof openPostgresLedger>>;

beforeEach(async () => {
  h = await stores.open();
  ledger = await openPostgresLedger({ url: h.url, clock: systemClock, logger: silentLogger });
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
  await ledger.close();
  await h.close();
});
afterAll(() => stores.close());

async function begun(how = "BEGIN"): Promise<pg.Client> {
  const client = await openAdmin(url);
  clients.push(client);
  await client.query(how);
  return client;
}

function kinds(outcomes: readonly SubmitOutcome[]): string[] {
  return outcomes.map((one) => one.kind);
}

describe("with the caller's commit", () => {
  test("the jobs are there when it is made, and nobody sees them before", async () => {
    const client = await begun();
    const jobs = [newJob(), newJob({ delayMs: 60_000, requestId: "r" })];
    const outcomes = await ledger.within(client).submit(jobs, ROOMY);
    expect(kinds(outcomes)).toEqual(["accepted", "accepted"]);
    expect(await look(ledger, present(jobs[0]).jobId)).toBeNull();
    expect(await claim(ledger, 10)).toEqual([]);
    expect(await numbers(ledger)).toEqual([0, 0, 0]);
    await client.query("COMMIT");
    expect(await numbers(ledger)).toEqual([2, 0, 2]);
    for (const outcome of outcomes)
      if (outcome.kind === "accepted")
        expect(await see(ledger, outcome.job.jobId)).toEqual(outcome.job);
    expect((await claim(ledger, 10)).map(({ job }) => job.jobId)).toEqual([jobs[0]?.jobId]);
  });

  test("workers are woken by it, of this process and of others", async () => {
    const theirs = await h.second();
    const [here, there] = [new Bell(), new Bell()];
    ledger.onWork(here.ring);
    theirs.onWork(there.ring);
    const client = await begun();
    await ledger.within(client).submit([newJob()], ROOMY);
    expect([here.rings, there.rings]).toEqual([0, 0]);
    const heard = Promise.all([here.heard(), there.heard()]);
    await client.query("COMMIT");
    await heard;
    expect(await claim(theirs, 1)).toHaveLength(1);
  });

  test("with what else the transaction does", async () => {
    await h.query("CREATE TABLE :schema.orders (id text PRIMARY KEY)");
    try {
      const client = await begun();
      await client.query(`INSERT INTO ${h.schema}.orders VALUES ('one')`);
      await ledger.within(client).submit([newJob()], ROOMY);
      await client.query("COMMIT");
      expect(await h.query("SELECT id FROM :schema.orders")).toEqual([{ id: "one" }]);
      expect(await numbers(ledger)).toEqual([1, 0, 1]);
    } finally {
      await h.query("DROP TABLE :schema.orders");
    }
  });
});

describe("without it", () => {
  test("a rollback leaves nothing, and wakes nobody", async () => {
    const bell = new Bell();
    ledger.onWork(bell.ring);
    const client = await begun();
    await ledger.within(client).submit([newJob(), keyed("k")], ROOMY);
    await client.query("ROLLBACK");
    expect(await numbers(ledger)).toEqual([0, 0, 0]);
    expect(kinds(await ledger.submit([keyed("k")], { maxDepth: 1 }))).toEqual(["accepted"]);
    expect(bell.rings).toBe(1);
  });

  test("nor does a connection that is lost", async () => {
    const client = await begun();
    await ledger.within(client).submit([newJob()], ROOMY);
    await client.end();
    expect(await numbers(ledger)).toEqual([0, 0, 0]);
    expect(kinds(await ledger.submit(newJobs(1), { maxDepth: 1 }))).toEqual(["accepted"]);
  });

  test("a rollback to a savepoint undoes what came after it", async () => {
    const client = await begun();
    const [kept, undone] = [newJob(), newJob()];
    await ledger.within(client).submit([kept], ROOMY);
    await client.query("SAVEPOINT here");
    await ledger.within(client).submit([undone, keyed("k")], ROOMY);
    await client.query("ROLLBACK TO SAVEPOINT here");
    await client.query("COMMIT");
    expect(await numbers(ledger)).toEqual([1, 0, 1]);
    expect(await look(ledger, undone.jobId)).toBeNull();
    expect((await see(ledger, kept.jobId)).status).toBe("queued");
  });
});

describe("the same promises as outside", () => {
  test("the bound holds over what is committed, what is not, and what the transaction did before", async () => {
    await ledger.submit(newJobs(2), ROOMY);
    const client = await begun();
    const { submit } = ledger.within(client);
    expect(kinds(await submit(newJobs(2), { maxDepth: 4 }))).toEqual(["accepted", "accepted"]);
    expect(await submit(newJobs(1), { maxDepth: 4 })).toEqual([{ kind: "full", depth: 4 }]);
    expect(kinds(await submit(newJobs(2), { maxDepth: 5, whole: true }))).toEqual(["full", "full"]);
    // Others wait for the counts, and see what was committed.
    const others = ledger.submit(newJobs(2), { maxDepth: 5 });
    await client.query("COMMIT");
    expect(kinds(await others)).toEqual(["accepted", "full"]);
    expect(await numbers(ledger)).toEqual([5, 0, 5]);
  });

  test("keys: known ones, own ones, and those that another submit waits with", async () => {
    const [old] = await ledger.submit([keyed("old")], ROOMY);
    const client = await begun();
    const { submit } = ledger.within(client);
    const first = keyed("new");
    const oldId = old !== undefined && "job" in old ? old.job.jobId : "";
    expect(told(await submit([keyed("old"), first, keyed("new")], ROOMY))).toEqual([
      `repeated ${oldId}`,
      `accepted ${first.jobId}`,
      `repeated ${first.jobId}`,
    ]);
    expect(told(await submit([keyed("new", "other")], ROOMY))).toEqual([`conflict ${first.jobId}`]);
    const waiting = ledger.submit([keyed("new")], ROOMY);
    await client.query("COMMIT");
    expect(told(await waiting)).toEqual([`repeated ${first.jobId}`]);
    expect(await numbers(ledger)).toEqual([2, 0, 2]);
  });

  test("of many transactions with one key at once one has it, and none is broken by the others", async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, async () => {
        const client = await begun();
        const outcomes = await ledger.within(client).submit([keyed("k"), newJob()], ROOMY);
        await client.query("COMMIT");
        return outcomes;
      }),
    );
    const ofKey = answers.map(([first]) => present(first));
    expect(kinds(ofKey).sort()).toEqual(["accepted", ...Array<string>(7).fill("repeated")]);
    expect(new Set(ofKey.map((one) => ("job" in one ? one.job.jobId : ""))).size).toBe(1);
    expect(await numbers(ledger)).toEqual([9, 0, 9]);
  });

  test("a used id rejects, by name; the transaction is the caller's to roll back", async () => {
    const job = newJob();
    await ledger.submit([job], ROOMY);
    const client = await begun();
    // With a key or without, alone or among others.
    const again = keyed("new", "f", { jobId: job.jobId });
    for (const jobs of [[job], [again], [newJob(), again]]) {
      await expect(ledger.within(client).submit(jobs, ROOMY)).rejects.toThrow(
        `job id ${job.jobId} is used twice`,
      );
      await client.query("ROLLBACK");
      await client.query("BEGIN");
    }
    expect(await numbers(ledger)).toEqual([1, 0, 1]);
  });

  test("in a transaction that has failed before it is told so", async () => {
    const client = await begun();
    await expect(client.query("SELECT 1 / 0")).rejects.toThrow("division by zero");
    for (const job of [newJob(), keyed("k")])
      await expect(ledger.within(client).submit([job], ROOMY)).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringMatching(/^client: .*failed before: ROLLBACK/) as string,
      });
  });

  test("nothing to submit asks nothing, and a closed ledger refuses", async () => {
    const client = await begun();
    expect(await ledger.within(client).submit([], ROOMY)).toEqual([]);
    await ledger.close();
    await expect(ledger.within(client).submit(newJobs(1), ROOMY)).rejects.toMatchObject({
      code: "ledger_closed",
    });
  });
});

describe("what can't be", () => {
  test("a client without a transaction is told to begin one, and nothing is recorded", async () => {
    const client = await begun("SELECT 1");
    for (const job of [newJob(), keyed("k")])
      await expect(ledger.within(client).submit([job], ROOMY)).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringMatching(/^client: .*BEGIN.*$/) as string,
      });
    expect(await numbers(ledger)).toEqual([0, 0, 0]);
  });

  test("a client of a database without the ledger is told so", async () => {
    const admin = await openAdmin(url);
    const name = newSchema();
    await admin.query(`CREATE DATABASE ${name}`);
    try {
      const elsewhere = new URL(url);
      elsewhere.pathname = `/${name}`;
      const client = await openAdmin(elsewhere.href);
      await client.query("BEGIN");
      await expect(ledger.within(client).submit(newJobs(1), ROOMY)).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringContaining(h.schema) as string,
      });
      await client.end();
    } finally {
      await admin.query(`DROP DATABASE ${name}`);
      await admin.end();
    }
  });
});
