import { describe, expect, test } from "vitest";
import type { Claim } from "../job/job.js";
import { LedgerError } from "../job/errors.js";
import type { Ledger, Settlement } from "../ledger/ledger.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import { silentLogger } from "../runtime/logger.js";
import { Connection, seededRandom } from "../../test/engine-rig.js";
import { VirtualClock } from "../../test/virtual-clock.js";
import { LedgerFaults } from "./ledger-faults.js";
import { Settler } from "./settler.js";

async function setUp(change: (ledger: Ledger) => Ledger = (ledger) => ledger) {
  const clock = new VirtualClock();
  const connection = new Connection(openMemoryLedger({ clock }));
  const faults = new LedgerFaults(silentLogger);
  const settler = new Settler({
    ledger: change(connection.ledger),
    clock,
    random: seededRandom(7),
    faults,
    logger: silentLogger,
  });
  const claims: Claim[] = [];
  for (let n = 0; n < 3; n += 1) {
    const jobId = `01ARZ3NDEKTSV4RRFFQ69G5FA${String(n)}`;
    const job = { jobId, task: "t", schemaVersion: 1, payloadJson: "{}" };
    await connection.ledger.submit([job], { maxDepth: 10 });
    claims.push({ jobId, workerId: "w", attempt: 1 });
  }
  await connection.ledger.claim({ workerId: "w", tasks: ["t"], limit: 3 });
  const claim = (index: number): Claim => {
    const found = claims[index];
    if (found === undefined) throw new Error("no such claim");
    return found;
  };
  const statuses = async (): Promise<(string | undefined)[]> =>
    (await connection.ledger.get(claims.map(({ jobId }) => jobId))).map((job) => job?.status);
  return { clock, connection, faults, settler, claim, statuses };
}

type Answer = (ledger: Ledger, list: readonly Settlement[]) => ReturnType<Ledger["settle"]>;
const through: Answer = (ledger, list) => ledger.settle(list);
const bug: Answer = () => Promise.reject(new RangeError("a bug"));
const unavailable: Answer = () =>
  Promise.reject(new LedgerError("ledger_unavailable", "the connection is cut"));

/** Answers `settle` in this order, and the last way from then on. */
function scripted(answers: readonly Answer[]): (ledger: Ledger) => Ledger {
  let calls = 0;
  return (ledger) => ({
    ...ledger,
    settle: (list) => {
      const answer = answers[Math.min(calls, answers.length - 1)] ?? through;
      calls += 1;
      return answer(ledger, list);
    },
  });
}

const DONE = { event: "succeed", resultJson: "1" } as const;

describe("recording ends", () => {
  test("says what a retry has become, also when the first answer to it was lost", async () => {
    const settleUnheard: Answer = async (ledger, list) => {
      await ledger.settle(list);
      throw new LedgerError("ledger_unavailable", "the connection broke while it committed");
    };
    const { settler, claim, clock, connection } = await setUp(
      scripted([through, settleUnheard, through]),
    );
    await connection.ledger.cancel([claim(0).jobId, claim(1).jobId]);
    const retry = { event: "retry", errorMessage: "Error: x", delayMs: 0 } as const;
    expect(await settler.settle(claim(0), retry)).toBe("cancelled");
    const unheard = settler.settle(claim(1), {
      event: "release",
      payloadJson: "{}",
      startedAtMs: clock.nowMs(),
    });
    await clock.advance(1_000);
    expect(await unheard).toBe("cancelled");
  });

  test("puts concurrent ones into one call, and says which were lost", async () => {
    const { settler, claim, connection, statuses } = await setUp();
    const outcomes = await Promise.all([
      settler.settle(claim(0), DONE),
      settler.settle({ ...claim(1), attempt: 9 }, DONE),
      settler.settle(claim(2), { event: "stop" }),
    ]);
    expect(outcomes).toEqual(["succeeded", "lost", "cancelled"]);
    expect(connection.calls.settle).toBe(1);
    expect(await statuses()).toEqual(["succeeded", "running", "cancelled"]);
  });

  test("an end that breaks the call does not take the others with it, and its job ends as failed", async () => {
    const { settler, claim, statuses } = await setUp((ledger) => ({
      ...ledger,
      settle: (list) =>
        list.some(({ end }) => end.event === "succeed" && end.resultJson === "poison")
          ? Promise.reject(new RangeError("a bug"))
          : ledger.settle(list),
    }));
    const outcomes = await Promise.all([
      settler.settle(claim(0), DONE),
      settler.settle(claim(1), { event: "succeed", resultJson: "poison" }),
      settler.settle(claim(2), DONE),
    ]);
    expect(outcomes).toEqual(["succeeded", "unrecorded", "succeeded"]);
    expect(await statuses()).toEqual(["succeeded", "failed", "succeeded"]);
  });

  test("a fault is over when an end that met a bug is recorded alone", async () => {
    const { settler, claim, clock, faults, statuses } = await setUp(
      scripted([unavailable, bug, through]),
    );
    const outcome = settler.settle(claim(0), DONE);
    await clock.advance(50);
    expect(faults.has("settle")).toBe(true);
    await clock.advance(1_000);
    expect(await outcome).toBe("succeeded");
    expect((await statuses())[0]).toBe("succeeded");
    expect(faults.has("settle")).toBe(false);
  });

  test("a fault does not outlive the tries: an end that nothing can record leaves none", async () => {
    const { settler, claim, clock, faults } = await setUp(scripted([unavailable, bug, bug, bug]));
    const outcome = settler.settle(claim(0), DONE);
    await clock.advance(1_000);
    expect(await outcome).toBe("unrecorded");
    expect(faults.has("settle")).toBe(false);
  });

  test("a ledger out of reach while an end is tried alone does not turn a success into a failure", async () => {
    const { settler, claim, clock, faults, statuses } = await setUp(
      scripted([bug, unavailable, through]),
    );
    const outcome = settler.settle(claim(0), DONE);
    await clock.advance(50);
    expect(faults.has("settle")).toBe(true);
    await clock.advance(1_000);
    expect(await outcome).toBe("succeeded");
    expect((await statuses())[0]).toBe("succeeded");
    expect(faults.has("settle")).toBe(false);
  });

  test("that an end can't be recorded is itself recorded, as soon as the ledger is back", async () => {
    const { settler, claim, clock, statuses } = await setUp(
      scripted([bug, bug, unavailable, unavailable, through]),
    );
    const outcome = settler.settle(claim(0), DONE);
    await clock.advance(50);
    expect((await statuses())[0]).toBe("running");
    await clock.advance(2_000);
    expect(await outcome).toBe("unrecorded");
    expect((await statuses())[0]).toBe("failed");
    expect(clock.pendingTimers).toBe(0);
  });

  test("and that is given up at the end of a shutdown, too", async () => {
    const { settler, claim, clock, statuses } = await setUp(scripted([bug, bug, unavailable]));
    const outcome = settler.settle(claim(0), DONE);
    await clock.advance(50);
    settler.giveUp();
    expect(await outcome).toBe("unrecorded");
    expect((await statuses())[0]).toBe("running");
    expect(clock.pendingTimers).toBe(0);
  });

  test("is given up at the end of a shutdown, at once", async () => {
    const { settler, claim, clock, connection, statuses, faults } = await setUp();
    connection.down = "all";
    const outcome = settler.settle(claim(0), DONE);
    await clock.advance(3_000);
    expect(faults.fault).toBe("the ledger can't be reached");
    settler.giveUp();
    expect(await outcome).toBe("unrecorded");
    expect(clock.pendingTimers).toBe(0);
    connection.down = "none";
    expect((await statuses())[0]).toBe("running");
  });

  test("is given up when the ledger is closed", async () => {
    const { settler, claim, connection } = await setUp();
    await connection.ledger.close();
    expect(await settler.settle(claim(0), DONE)).toBe("unrecorded");
  });
});
