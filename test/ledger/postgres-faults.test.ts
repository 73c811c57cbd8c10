/** What a server, a network or a proxy may do to the PostgreSQL ledger, and that it comes through by itself. */
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { LedgerError } from "../../src/job/errors.js";
import type { Job } from "../../src/job/job.js";
import { isTerminal } from "../../src/job/state.js";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock, type Clock } from "../../src/runtime/clock.js";
import { silentLogger, type Logger } from "../../src/runtime/logger.js";
import { PostgresProxy } from "../postgres-proxy.js";
import { startPostgres, type PostgresServer } from "../postgres-server.js";
import { stress } from "../stress/stress.js";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  Bell,
  claim,
  claimOf,
  claimOne,
  look,
  newJob,
  newJobs,
  OTHER_WORKER,
  present,
  ROOMY,
  settleOne,
  SUCCEED,
  waitUntil,
  WORKER,
} from "./acts.js";
import {
  inSchemaUrl,
  newSchema,
  PostgresStores,
  type PostgresHarness,
} from "./postgres-factory.js";
import { VirtualClock } from "./virtual-clock.js";

const LIMIT_MS = 120_000;
const url = inject("postgresUrl");
const stores = new PostgresStores(url);
afterAll(() => stores.close());

const isEnded = (job: { status: Parameters<typeof isTerminal>[0] } | null): boolean =>
  job !== null && isTerminal(job.status);

function open(
  store: string,
  clock: Clock = systemClock,
  logger: Logger = silentLogger,
): Promise<Ledger> {
  return openPostgresLedger({ url: store, clock, logger });
}

async function withStore(body: (h: PostgresHarness) => Promise<void>): Promise<void> {
  const h = await stores.open();
  try {
    await body(h);
  } finally {
    await h.close();
  }
}

/** Until it works: the only answer meanwhile is `ledger_unavailable`. */
async function persist<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof LedgerError) || error.code !== "ledger_unavailable") throw error;
    }
    await new Promise((resolve) => systemClock.timer(20, () => resolve(undefined)));
  }
}

/** As `waitUntil`, by someone who looks again when a look fails. */
async function waitThrough(
  ledger: Ledger,
  jobId: string,
  done: (job: Job | null) => boolean,
): Promise<Job | null> {
  const bell = new Bell();
  const leave = ledger.watch(jobId, bell.ring);
  try {
    for (;;) {
      const heard = bell.heard();
      const job = await persist(() => look(ledger, jobId));
      if (done(job)) return job;
      await heard;
    }
  } finally {
    leave();
  }
}

/** The counts are what a count of the rows gives. */
async function expectNoDrift(h: PostgresHarness): Promise<void> {
  const [row] = await h.query<Record<string, string>>(`
    SELECT c.queued, c.running, c.terminal,
      (SELECT count(*) FROM :schema.async_jobs WHERE status = 'queued') AS queued_rows,
      (SELECT count(*) FROM :schema.async_jobs WHERE status = 'running') AS running_rows,
      (SELECT count(*) FROM :schema.async_jobs WHERE finished_at IS NOT NULL) AS terminal_rows
    FROM :schema.async_counts c`);
  const { queued, running, terminal, ...rows } = present(row);
  expect([queued, running, terminal]).toEqual([
    rows["queued_rows"],
    rows["running_rows"],
    rows["terminal_rows"],
  ]);
}

const KILL = `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
  WHERE application_name = ':schema' AND pid <> pg_backend_pid()`;
const KILL_LISTENERS = `${KILL} AND query LIKE 'LISTEN jobtable_' || ':schema'`;

describe("connections that are cut", () => {
  test(
    "under load: nothing but ledger_unavailable, no job lost, none twice, no drift",
    { timeout: LIMIT_MS },
    () =>
      withStore(async (h) => {
        const second = await h.second();
        const jobs = newJobs(300);
        const submitted = (async () => {
          for (let at = 0; at < jobs.length; at += 20)
            await persist(async () => {
              const some = jobs.slice(at, at + 20);
              // The break may have come while it committed: then they are there.
              const [known] = await h.ledger.get([present(some[0]).jobId]);
              if (known === null || known === undefined) await h.ledger.submit(some, ROOMY);
            });
        })();
        const phase = { submitting: true, killing: true };
        let ended = 0;
        const worker = async (ledger: Ledger, workerId: string): Promise<void> => {
          for (;;) {
            const claimed = await persist(() => claim(ledger, 16, workerId));
            // What a broken claim took without an answer comes back by rescue; here at once.
            if (claimed.length === 0) {
              const back = await persist(() =>
                ledger.claim({ workerId, tasks: ["echo"], limit: 1 }),
              );
              if (back.length === 0 && !phase.submitting) return;
              claimed.push(...back);
            }
            await persist(() =>
              ledger.heartbeat(
                beat(workerId),
                claimed.map(({ job }) => beatOf(job)),
              ),
            );
            await persist(() =>
              ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED }))),
            );
            ended += claimed.length;
          }
        };
        const workers = [worker(h.ledger, WORKER), worker(second, OTHER_WORKER)];
        const killer = (async () => {
          while (phase.killing) {
            await h.query(KILL);
            await new Promise((resolve) => systemClock.timer(100, () => resolve(undefined)));
          }
        })();
        await submitted;
        phase.submitting = false;
        phase.killing = false;
        await killer;
        await Promise.all(workers);
        expect(ended).toBeGreaterThan(0);
        await expectNoDrift(h);
        const gone = {
          jobTimeoutMs: 1e9,
          workerTimeoutMs: 1e9,
          goneWorkerIds: [WORKER, OTHER_WORKER],
          chunk: 1_000,
        };
        await persist(() => h.ledger.rescue(gone));
        await expectNoDrift(h);
        const [numbers] = await h.query<{ jobs: string; ends: string }>(
          "SELECT count(*) AS jobs, count(finished_at) AS ends FROM :schema.async_jobs",
        );
        expect(numbers).toEqual({ jobs: "300", ends: "300" });
      }),
  );

  test(
    "a watcher whose listening connection was cut is told of what happened meanwhile",
    { timeout: LIMIT_MS },
    () =>
      withStore(async (h) => {
        const second = await h.second();
        const { jobId } = await acceptOne(h.ledger);
        const ended = waitThrough(second, jobId, isEnded);
        const work = new Bell();
        second.onWork(work.ring);
        const heard = work.heard();
        await h.query(KILL_LISTENERS);
        await persist(() => h.ledger.cancel([jobId]));
        expect((await ended)?.status).toBe("cancelled");
        await heard;
        const next = waitThrough(second, (await acceptOne(h.ledger)).jobId, isEnded);
        const { job } = await claimOne(h.ledger);
        await settleOne(h.ledger, claimOf(job), SUCCEED);
        expect((await next)?.status).toBe("succeeded");
      }),
  );

  test.each(["settle", "cancel"] as const)(
    "an answer to %s that is cut off after the commit: who watches in this process is told all the same",
    { timeout: LIMIT_MS },
    (verb) =>
      withStore(async (h) => {
        const proxy = await PostgresProxy.start(h.url);
        const ledger = await open(proxy.url);
        try {
          const { jobId } = await acceptOne(ledger);
          const { job } = await claimOne(ledger);
          const told = new Bell();
          ledger.watch(jobId, told.ring);
          proxy.faults = { cutsAnswerTo: `jobtable_${verb}_` };
          const change =
            verb === "settle" ? settleOne(ledger, claimOf(job), SUCCEED) : ledger.cancel([jobId]);
          await expect(change).rejects.toMatchObject({ code: "ledger_unavailable" });
          proxy.faults = {};
          const heard = told.heard();
          await ledger.counts();
          if (told.rings === 0) await heard;
          expect(await look(ledger, jobId)).toMatchObject(
            verb === "settle"
              ? { status: "succeeded" }
              : { cancelRequestedAtMs: expect.any(Number) as number },
          );
        } finally {
          await ledger.close();
          await proxy.stop();
        }
      }),
  );
});

describe("a server that goes away", () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.stop());

  test.each(["fast", "immediate"] as const)(
    "%s: verbs reject at once, what was accepted is there afterwards, waiters wake",
    { timeout: LIMIT_MS },
    async (mode) => {
      const store = inSchemaUrl(server.url, newSchema());
      const [ledger, other] = [await open(store), await open(store)];
      try {
        const [waiting, running] = await accept(ledger, newJobs(2));
        const claimed = await claimOne(ledger);
        expect(claimed.job.jobId).toBe(waiting?.jobId);
        // A claim that was answered is on disk: its worker may have begun.
        const ended = waitThrough(other, claimed.job.jobId, isEnded);
        await server.halt(mode);
        for (const call of [
          () => ledger.counts(),
          () => claim(ledger, 1),
          () => ledger.submit([newJob()], ROOMY),
        ])
          await expect(call()).rejects.toMatchObject({ code: "ledger_unavailable" });
        await server.resume();
        expect(await persist(() => settleOne(ledger, claimOf(claimed.job), SUCCEED))).toBe(true);
        expect((await ended)?.status).toBe("succeeded");
        const rest = await persist(() => claim(other, 10));
        expect(rest.map(({ job }) => job.jobId)).toEqual([running?.jobId]);
        // Also what comes later is heard of.
        const again = waitThrough(other, present(rest[0]).job.jobId, isEnded);
        expect(await persist(() => settleOne(ledger, claimOf(present(rest[0]).job), SUCCEED))).toBe(
          true,
        );
        expect((await again)?.status).toBe("succeeded");
      } finally {
        await Promise.all([ledger.close(), other.close()]);
      }
    },
  );

  test("what can't be opened says why in one line, and never shows a password", async () => {
    const at = (change: (url: URL) => void): string => {
      const changed = new URL(server.url);
      changed.password = "hidden-word";
      change(changed);
      return changed.href;
    };
    const messages = [];
    for (const store of [
      at((wrong) => (wrong.pathname = "/nowhere")),
      at((wrong) => (wrong.username = "nobody-here")),
      at((wrong) => (wrong.port = "1")),
      at((wrong) => wrong.searchParams.set("schema", "pg_mine")),
      at((wrong) => wrong.searchParams.set("schema", 'a"; DROP TABLE x; --')),
    ]) {
      const error: unknown = await open(store).catch((reason: unknown) => reason);
      messages.push(error instanceof Error ? error.message : "it opened");
    }
    expect(messages[0]).toMatch(/the database does not exist/);
    expect(messages[1]).toMatch(/check user and password/);
    expect(messages[2]).toMatch(/can't be reached/);
    expect(messages[3]).toMatch(/schema "pg_mine" can't be used/);
    expect(messages[4]).toMatch(/can't be used/);
    for (const message of messages) expect(message).not.toMatch(/hidden-word|\n/);
  });
});

describe("proxies", () => {
  test(
    "one that pools transactions: nothing is prepared, watchers look instead of listening",
    { timeout: LIMIT_MS },
    () =>
      withStore(async (h) => {
        const proxy = await PostgresProxy.start(h.url, {
          refusesSettings: true,
          dropsNotifications: true,
        });
        const ledger = await open(proxy.url);
        try {
          const jobs = await accept(ledger, newJobs(30));
          const waits = jobs.map((job) => waitUntil(ledger, job.jobId, isEnded));
          const claimed = await claim(h.ledger, 30);
          await h.ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })));
          const statuses = (await Promise.all(waits)).map((job) => job?.status);
          expect(new Set(statuses)).toEqual(new Set(["succeeded"]));
          expect([...proxy.preparedNames]).toEqual([""]);
        } finally {
          await ledger.close();
          await proxy.stop();
        }
      }),
  );

  test(
    "a listening connection that is dead at the other end only is found and replaced",
    { timeout: LIMIT_MS },
    () =>
      withStore(async (h) => {
        const clock = new VirtualClock();
        const proxy = await PostgresProxy.start(h.url);
        const ledger = await open(proxy.url, clock);
        try {
          const { jobId } = await acceptOne(h.ledger);
          const told = new Bell();
          ledger.watch(jobId, told.ring);
          // The pool's connections are cut; the next call has a new one.
          proxy.swallow();
          await h.query(`${KILL} AND query NOT LIKE 'LISTEN%'`);
          await h.ledger.cancel([jobId]).catch(() => undefined);
          // Time passes for the ledger while the server answers in its own.
          while (told.rings === 0) {
            clock.advance(500);
            await new Promise((resolve) => systemClock.timer(5, () => resolve(undefined)));
          }
          expect(told.rings).toBeGreaterThan(0);
        } finally {
          await proxy.stop();
          await ledger.close();
        }
      }),
  );
});

describe("many at once", () => {
  test("the books balance under stress, over two handles", { timeout: LIMIT_MS }, () =>
    withStore(async (h) => {
      const counts = await stress([h.ledger, await h.second()], {
        durationMs: 1_000,
        maxDepth: 16,
      });
      expect(counts.ended).toBe(counts.accepted);
      expect(counts.accepted).toBeGreaterThan(0);
      await expectNoDrift(h);
    }),
  );

  test(
    "more jobs than one message holds: every watcher elsewhere is told",
    { timeout: LIMIT_MS },
    () =>
      withStore(async (h) => {
        const second = await h.second();
        const jobs = await accept(h.ledger, newJobs(1_000));
        const waits = (done: (status: string) => boolean): Promise<unknown>[] =>
          jobs.map(({ jobId }) =>
            waitUntil(second, jobId, (job) => job !== null && done(job.status)),
          );
        const started = waits((status) => status === "running");
        const claimed = await claim(h.ledger, 1_000);
        await Promise.all(started);
        const ended = waits((status) => status === "succeeded");
        await h.ledger.settle(claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })));
        await Promise.all(ended);
        expect(claimed).toHaveLength(1_000);
      }),
  );

  test(
    "owners, users and beats on the same jobs, in any order: nobody waits for ever, no drift",
    { timeout: LIMIT_MS },
    () =>
      withStore(async (h) => {
        const second = await h.second();
        for (let round = 0; round < 5; round += 1) {
          await accept(h.ledger, newJobs(60));
          const jobs = (await claim(h.ledger, 60)).map(({ job }) => job);
          const backwards = jobs.toReversed();
          await Promise.all([
            h.ledger.settle(backwards.map((job) => ({ ...claimOf(job), end: SUCCEED }))),
            second.settle(jobs.map((job) => ({ ...claimOf(job), end: { event: "stop" } }))),
            h.ledger.heartbeat(
              beat(),
              backwards.map((job) => beatOf(job, "1")),
            ),
            second.heartbeat(
              beat(),
              jobs.map((job) => beatOf(job, "2")),
            ),
            second.cancel(backwards.map(({ jobId }) => jobId)),
            h.ledger.cancel(jobs.map(({ jobId }) => jobId)),
            second.evict({ ttlMs: -1, keep: 10, chunk: 100 }),
          ]);
          await expectNoDrift(h);
        }
      }),
  );
});
