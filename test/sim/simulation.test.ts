import { describe, expect, test } from "vitest";
import type { Ledger } from "../../src/ledger/ledger.js";
import { openMemoryLedger } from "../../src/ledger/memory/memory-ledger.js";
import type { VirtualClock } from "../ledger/virtual-clock.js";
import { simulate } from "./simulation.js";

const SEEDS = Array.from({ length: 15 }, (_, at) => at + 1);
const STEPS = 400;

const open = (clock: VirtualClock): Ledger => openMemoryLedger({ clock });

describe("the memory ledger under workers that pause, die and come back", () => {
  test.each(SEEDS)(
    "seed %i: the invariants hold, and the trace is the same twice",
    async (seed) => {
      const first = await simulate({ seed, steps: STEPS, open });
      const second = await simulate({ seed, steps: STEPS, open });
      expect(first.trace.length).toBeGreaterThan(STEPS / 2);
      expect(second.trace).toEqual(first.trace);
    },
  );

  test("everything that it is for does happen", async () => {
    const tally = new Map<string, number>();
    for (const seed of SEEDS)
      for (const [what, count] of Object.entries(
        (await simulate({ seed, steps: STEPS, open })).tally,
      ))
        tally.set(what, (tally.get(what) ?? 0) + count);
    for (const what of [
      "submits",
      "refused",
      "claims",
      "succeed",
      "succeed refused",
      "fail",
      "time_out",
      "stop",
      "retry",
      "retry refused",
      "release",
      "cancels",
      "rescues",
      "expires",
      "forgets",
      "lost",
      "pauses",
      "dies",
    ])
      expect(tally.get(what) ?? 0, what).toBeGreaterThan(10);
  });

  test("another seed is another trace", async () => {
    const one = await simulate({ seed: 1, steps: STEPS, open });
    const two = await simulate({ seed: 2, steps: STEPS, open });
    expect(one.trace).not.toEqual(two.trace);
  });
});

/** Ledgers with one fault each: a simulation that can't fail would say nothing. */
describe("it finds", () => {
  const faults: Readonly<Record<string, (ledger: Ledger) => Partial<Ledger>>> = {
    "a stale claim that settles": (ledger) => ({
      async settle(settlements) {
        const jobs = await ledger.get(settlements.map(({ jobId }) => jobId));
        return ledger.settle(
          settlements.map((settlement, at) => ({
            ...settlement,
            attempt: jobs[at]?.attempt ?? settlement.attempt,
            workerId: jobs[at]?.workerId ?? settlement.workerId,
          })),
        );
      },
    }),
    "a bound that is one too large": (ledger) => ({
      submit: (jobs, { maxDepth }) => ledger.submit(jobs, { maxDepth: maxDepth + 1 }),
    }),
    "a claim that takes more than its limit": (ledger) => ({
      claim: (request) => ledger.claim({ ...request, limit: request.limit + 1 }),
    }),
    "a sweep that forgets to rescue": () => ({ rescue: () => Promise.resolve([]) }),
    "an end that is answered the wrong way": (ledger) => ({
      settle: async (settlements) =>
        (await ledger.settle(settlements)).map((status) => status ?? "succeeded"),
    }),
    "a retry that became a cancel, answered as a retry": (ledger) => ({
      settle: async (settlements) =>
        (await ledger.settle(settlements)).map((status, at) =>
          status !== null && settlements[at]?.end.event === "retry" ? "queued" : status,
        ),
    }),
    "counts that miss one": (ledger) => ({
      async counts() {
        const counts = await ledger.counts();
        return { ...counts, running: Math.max(0, counts.running - 1) };
      },
    }),
  };
  test.each(Object.entries(faults))("%s, and names the seed and the trace", async (_, fault) => {
    const broken = (clock: VirtualClock): Ledger => {
      const ledger = openMemoryLedger({ clock });
      const faulty = fault(ledger);
      return new Proxy(ledger, {
        get(target, verb) {
          const member: unknown = Reflect.get(verb in faulty ? faulty : target, verb);
          return typeof member === "function" ? (member.bind(target) as unknown) : member;
        },
      });
    };
    let first: unknown;
    for (const seed of SEEDS) {
      first ??= await simulate({ seed, steps: STEPS, open: broken }).then(
        () => undefined,
        (error: unknown) => error,
      );
    }
    expect(first instanceof Error ? first.message : "").toMatch(
      /^seed \d+, step \d+: .+\n +\d+ \w+/,
    );
  });
});
