/** What the PostgreSQL ledger does where it can't hear of changes, or can't tell whether it does. */
import { afterAll, afterEach, describe, expect, inject, test, vi } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock, type Clock } from "../../src/runtime/clock.js";
import { silentLogger, type Logger } from "../../src/runtime/logger.js";
import { turnEnd } from "../../src/runtime/turn.js";
import { PostgresProxy } from "../postgres-proxy.js";
import { acceptOne, Bell } from "./acts.js";
import { PostgresStores, type PostgresHarness } from "./postgres-factory.js";
import { VirtualClock } from "./virtual-clock.js";

/** How long an answer of the server is waited for. */
const ANSWER_LIMIT_MS = 15_000;

const stores = new PostgresStores(inject("postgresUrl"));
afterAll(() => stores.close());
afterEach(() => vi.useRealTimers());

async function withProxy(
  body: (h: PostgresHarness, proxy: PostgresProxy) => Promise<void>,
): Promise<void> {
  const h = await stores.open();
  const proxy = await PostgresProxy.start(h.url);
  try {
    await body(h, proxy);
  } finally {
    await proxy.stop();
    await h.close();
  }
}

function open(proxy: PostgresProxy, clock: Clock, logger: Logger = silentLogger): Promise<Ledger> {
  return openPostgresLedger({ url: proxy.url, clock, logger });
}

/** A logger whose bell rings at this message, whatever its level. */
function ringsAt(message: string): { readonly logger: Logger; readonly bell: Bell } {
  const bell = new Bell();
  const log = (_: unknown, text: string): void => {
    if (text === message) bell.ring();
  };
  return { logger: { ...silentLogger, debug: log, info: log, warn: log, error: log }, bell };
}

/** The turn of the event loop is real; the timers of the driver are not. */
function holdTimers(): void {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await turnEnd();
}

describe("a server that takes connections and answers nothing", () => {
  test("does not keep a ledger from saying that it can't be opened", () =>
    withProxy(async (_, proxy) => {
      proxy.faults = { swallowsWord: "server_encoding" };
      holdTimers();
      const opening = open(proxy, systemClock).catch((error: unknown) => error);
      await until(() => proxy.ran.size > 0);
      vi.advanceTimersByTime(ANSWER_LIMIT_MS);
      expect(await opening).toMatchObject({ code: "ledger_unavailable" });
    }));

  test("does not keep a ledger from being opened when it is LISTEN that hangs", () =>
    withProxy(async (h, proxy) => {
      const clock = new VirtualClock();
      const { logger, bell } = ringsAt("can't listen to the ledger's changes");
      proxy.faults = { swallowsWord: "LISTEN" };
      holdTimers();
      let listening = proxy.swallowedWords;
      const opening = open(proxy, clock, logger);
      await until(() => proxy.swallowedWords > listening);
      vi.advanceTimersByTime(ANSWER_LIMIT_MS);
      const ledger = await opening;
      expect(bell.rings).toBe(1);
      // Nor from being closed.
      listening = proxy.swallowedWords;
      clock.advance(100);
      await until(() => proxy.swallowedWords > listening);
      await ledger.close();
      expect(await h.ledger.counts()).toMatchObject({ total: 0 });
    }));
});

test("a server that is silent holds up nobody who closes", { timeout: 12_000 }, () =>
  withProxy(async (_, proxy) => {
    const clock = new VirtualClock();
    const ledger = await open(proxy, clock);
    await ledger.counts();
    await until(() => proxy.underWay === 0);
    proxy.swallow();
    const call = expect(ledger.counts()).rejects.toMatchObject({ code: "ledger_unavailable" });
    await until(() => proxy.underWay > 0);
    const closed = ledger.close();
    clock.advance(5_000);
    await call;
    await closed;
  }),
);

describe("a change that was not heard", () => {
  test("before the first LISTEN that works: the gap is told", () =>
    withProxy(async (_, proxy) => {
      const clock = new VirtualClock();
      proxy.faults = { swallowsWord: "LISTEN" };
      holdTimers();
      const opening = open(proxy, clock);
      await until(() => proxy.swallowedWords > 0);
      vi.advanceTimersByTime(ANSWER_LIMIT_MS);
      const ledger = await opening;
      const work = new Bell();
      ledger.onWork(work.ring);
      const heard = work.heard();
      proxy.faults = {};
      clock.advance(100);
      await heard;
      expect(work.rings).toBe(1);
      await ledger.close();
    }));

  test("while nothing can be sent to find out: jobs are looked at", () =>
    withProxy(async (h, proxy) => {
      const clock = new VirtualClock();
      const { logger, bell } = ringsAt("could not probe the ledger's channel");
      const ledger = await open(proxy, clock, logger);
      try {
        const { jobId } = await acceptOne(h.ledger);
        // It hears: this comes by the channel, and not from a look.
        const told = new Bell();
        ledger.watch(jobId, told.ring);
        const first = told.heard();
        await h.ledger.cancel([jobId]);
        await first;
        // The connection that listens is dead at the other end, the others are cut.
        proxy.swallow();
        proxy.faults = { refusesConnections: true };
        await h.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE application_name = ':schema' AND query NOT LIKE 'LISTEN%'`);
        const unsent = bell.heard();
        clock.advance(10_000);
        await unsent;
        await turnEnd();
        proxy.faults = {};
        const looked = told.heard();
        clock.advance(1_000);
        await looked;
        expect(told.rings).toBeGreaterThan(1);
      } finally {
        await ledger.close();
      }
    }));
});
