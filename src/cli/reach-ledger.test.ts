import { expect, test } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import { LedgerError } from "../job/errors.js";
import { silentLogger } from "../runtime/logger.js";
import { reachLedger, type ReachOptions } from "./reach-ledger.js";

const STORE = "postgres://here/db";
const AWAY = new LedgerError("ledger_unavailable", "nobody listens");
const NEVER = new Promise<never>(() => undefined);

/** A ledger that answers from its `works`-th call on. */
function setUp(works: number, options: Partial<ReachOptions> = {}) {
  const clock = new VirtualClock();
  const said: string[] = [];
  const calls: number[] = [];
  const say = (_: unknown, message: string): void => void said.push(message);
  const logger = { ...silentLogger, warn: say, info: say };
  const reached = reachLedger(
    async () => {
      calls.push(clock.monotonicMs());
      if (calls.length < works) throw AWAY;
      return "ledger";
    },
    { store: STORE, clock, logger, stopped: NEVER, ...options },
  );
  return { clock, said, calls, reached };
}

test("a ledger that answers is not spoken of", async () => {
  const { said, reached } = setUp(1);
  expect(await reached).toBe("ledger");
  expect(said).toEqual([]);
});

test("tries with growing pauses until it answers, and says so once a minute", async () => {
  const { clock, said, calls, reached } = setUp(22);
  await clock.advance(90_000);
  expect(await reached).toBe("ledger");
  expect(calls.slice(0, 7)).toEqual([0, 250, 750, 1_750, 3_750, 7_750, 12_750]);
  const away = "the ledger can't be reached yet; trying until it answers";
  expect(said).toEqual([away, away, "the ledger answers"]);
  expect(clock.pendingTimers).toBe(0);
});

test("a stop ends the waiting", async () => {
  let stop: () => void = () => undefined;
  const stopped = new Promise<void>((resolve) => (stop = resolve));
  const { clock, calls, reached } = setUp(Infinity, { stopped });
  await clock.advance(1_000);
  stop();
  expect(await reached).toBe(null);
  expect(calls).toHaveLength(3);
  expect(clock.pendingTimers).toBe(0);
});

test.each(["sqlite:jobs.db", "memory"])("%s is not waited for", async (store) => {
  await expect(setUp(2, { store }).reached).rejects.toBe(AWAY);
});

test.each(["ledger_refused", "ledger_newer", "ledger_unreadable"] as const)(
  "%s is not waited for",
  async (code) => {
    const error = new LedgerError(code, "no");
    const options = { store: STORE, clock: new VirtualClock(), logger: silentLogger };
    const reached = reachLedger(() => Promise.reject(error), { ...options, stopped: NEVER });
    await expect(reached).rejects.toBe(error);
  },
);
