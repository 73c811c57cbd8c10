/** Faults that users of such systems have met, played against one engine. */
import { describe, expect, test } from "vitest";
import { LedgerError } from "../job/errors.js";
import { encodePayload } from "../job/payload.js";
import { openMemoryLedger } from "../ledger/memory/memory-ledger.js";
import {
  Connection,
  createRig,
  HeldTask,
  SETTINGS,
  stopped,
  submitted,
  withRig,
} from "../../test/engine-rig.js";
import { settled, VirtualClock } from "../../test/virtual-clock.js";

/** What anyone may read of a connection that is cut. */
const SENTENCE = "the ledger can't be reached";

function connected() {
  const clock = new VirtualClock();
  const connection = new Connection(openMemoryLedger({ clock }));
  return { clock, connection, ledger: connection.ledger };
}

describe("a ledger that is out of reach", () => {
  test("F1: keeps an end until it can be recorded, and claims nothing meanwhile", async () => {
    const { clock, connection, ledger } = connected();
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1 };
    await withRig({ tasks: [slow.options], ledger, clock, settings }, async (rig) => {
      const first = await submitted(rig, "slow");
      const second = await submitted(rig, "slow");
      const third = await submitted(rig, "slow");
      // Long enough that nothing is claimed ahead.
      await rig.clock.advance(40);
      connection.down = ["settle"];
      slow.call(0).succeed("kept");
      await rig.clock.advance(10_000);
      // The second one was claimed before anyone could know.
      slow.call(1).succeed("kept as well");
      await rig.clock.advance(50_000);
      expect(rig.engine.health()).toMatchObject({ busy: 0, ledgerFault: SENTENCE });
      expect(await rig.engine.ready()).toEqual({ ready: false, reason: SENTENCE });
      expect(slow.calls.length).toBe(2);
      expect(await rig.engine.counts()).toMatchObject({ running: 2, queued: 1 });
      // Tried again, but not hammered.
      expect(connection.calls.settle).toBeGreaterThan(5);
      expect(connection.calls.settle).toBeLessThan(40);
      connection.down = "none";
      await rig.clock.advance(5_000);
      expect(await rig.engine.get(first)).toMatchObject({ status: "succeeded" });
      expect(await rig.engine.get(second)).toMatchObject({ status: "succeeded" });
      expect(await rig.engine.get(third)).toMatchObject({ status: "running" });
      expect(rig.engine.health().ledgerFault).toBeNull();
      const spoken = rig.logs.filter(({ fields }) => fields["verb"] === "settle");
      expect(spoken.map(({ level }) => level)).toEqual(["error", "info"]);
    });
  });

  test("F1: resumes claiming and beating by itself after a break of any length", async () => {
    const { clock, connection, ledger } = connected();
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], ledger, clock }, async (rig) => {
      connection.down = "all";
      await rig.clock.advance(3_600_000);
      expect((await rig.engine.ready()).ready).toBe(false);
      connection.down = "none";
      await rig.clock.advance(10_000);
      expect(await rig.engine.ready()).toEqual({ ready: true, reason: null });
      await submitted(rig, "slow");
      await settled();
      expect(slow.calls.length).toBe(1);
    });
  });

  test("recognises its own record when the connection broke after the commit", async () => {
    const { clock, connection, ledger } = connected();
    const slow = new HeldTask("slow");
    await withRig({ tasks: [slow.options], ledger, clock }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await settled();
      const job = await rig.engine.get(jobId);
      const claim = { jobId, workerId: job?.workerId ?? "", attempt: 1 };
      connection.down = ["settle"];
      slow.call(0).succeed(1);
      await settled();
      // What the broken call had in fact done.
      connection.down = "none";
      await ledger.settle([{ ...claim, end: { event: "succeed", resultJson: "1" } }]);
      await rig.clock.advance(1_000);
      expect(rig.engine.health()).toMatchObject({ processed: 1, failed: 0 });
    });
  });

  test("F7, F9: a failed heartbeat is tried again soon and gives no slot back", async () => {
    const { clock, connection, ledger } = connected();
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1 };
    await withRig({ tasks: [slow.options], ledger, clock, settings }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await submitted(rig, "slow");
      connection.down = ["heartbeat"];
      await rig.clock.advance(15_000);
      expect(slow.mostRunning).toBe(1);
      expect(rig.engine.health()).toMatchObject({ busy: 1 });
      expect(slow.call(0).ctx.signal.aborted).toBe(false);
      connection.down = "none";
      await rig.clock.advance(1_100);
      expect((await rig.engine.get(jobId))?.lastHeartbeatMs).toBeGreaterThan(clock.nowMs() - 1_100);
    });
  });

  test("that answers a claim late holds no slot of the synchronous path", async () => {
    const { clock, connection, ledger } = connected();
    const claim = ledger.claim.bind(ledger);
    let answer: () => void = () => undefined;
    const slowClaims = new Connection({
      ...ledger,
      claim: async (request) => {
        const claimed = await claim(request);
        await new Promise<void>((resolve) => (answer = resolve));
        return claimed;
      },
    });
    const echo = { name: "echo", run: (input: unknown) => input };
    const options = {
      tasks: [echo],
      ledger: slowClaims.ledger,
      clock,
      settings: { maxWorkers: 1 },
    };
    const rig = createRig(options);
    await rig.engine.start();
    const jobId = await submitted(rig, "echo");
    const request = rig.engine.run({ task: "echo", input: 1 });
    await rig.clock.advance(300);
    expect(await request).toEqual({ kind: "done", resultJson: "1" });
    // A hint and a poll that come while the claim is late must not make it seek slots over and over.
    const another = await submitted(rig, "echo");
    await rig.clock.advance(1_500);
    answer();
    for (let turn = 0; turn < 5; turn += 1) {
      await settled();
      answer();
    }
    expect((await rig.engine.get(jobId))?.status).toBe("succeeded");
    expect((await rig.engine.get(another))?.status).toBe("succeeded");
    const stopping = stopped(rig);
    await settled();
    answer();
    await stopping;
    expect(connection.calls.claim).toBeGreaterThan(0);
  });
});

describe("a release whose answer was lost", () => {
  test("is not repeated on the attempt that this worker runs by then", async () => {
    const { clock, ledger } = connected();
    const task = new HeldTask("task");
    const lost: { answer: (() => void) | null } = { answer: null };
    let holdsClaims = false;
    let answerClaim: () => void = () => undefined;
    const unheard = {
      ...ledger,
      claim: async (request: Parameters<typeof ledger.claim>[0]) => {
        const claimed = await ledger.claim(request);
        if (holdsClaims) await new Promise<void>((resolve) => (answerClaim = resolve));
        return claimed;
      },
      settle: async (list: Parameters<typeof ledger.settle>[0]) => {
        const answers = await ledger.settle(list);
        if (lost.answer !== null || !list.some(({ end }) => end.event === "release"))
          return answers;
        await new Promise<void>((resolve) => (lost.answer = resolve));
        throw new LedgerError("ledger_unavailable", "the connection broke after the commit");
      },
    };
    const settings = { maxWorkers: 1 };
    await withRig({ tasks: [task.options], ledger: unheard, clock, settings }, async (rig) => {
      await rig.clock.advance(100);
      holdsClaims = true;
      const jobId = await submitted(rig, "task");
      const request = rig.engine.run({ task: "task", input: "request" });
      // The claim is late, its slot goes to the request, and the job waits for one in vain.
      await rig.clock.advance(500);
      holdsClaims = false;
      answerClaim();
      await rig.clock.advance(200);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "queued", attempt: 0 });
      task.call(0).succeed("answered");
      expect((await request).kind).toBe("done");
      await rig.clock.advance(2_000);
      expect(task.call(1).ctx.attempt).toBe(1);
      expect(lost.answer).not.toBeNull();
      lost.answer?.();
      await rig.clock.advance(10_000);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "running", attempt: 1 });
      expect(task.calls).toHaveLength(2);
      expect(task.call(1).ctx.signal.aborted).toBe(false);
      task.call(1).succeed("ran once");
      await rig.clock.advance(100);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "succeeded", attempt: 1 });
    });
  });
});

describe("what /ready tells", () => {
  test("F33: is the registry's sentence, or that the ledger does not answer; the log has the rest", async () => {
    const { clock, ledger } = connected();
    const faults = [
      {
        error: new LedgerError("ledger_full", "disk full: /srv/jobs.db"),
        told: "the ledger's disk is full",
      },
      { error: new RangeError("SQLITE_X at /srv/jobs.db"), told: "the ledger does not answer" },
    ];
    for (const { error, told } of faults) {
      let broken = false;
      const counts = () => (broken ? Promise.reject(error) : ledger.counts());
      await withRig({ clock, ledger: { ...ledger, counts } }, async (rig) => {
        broken = true;
        for (let probe = 0; probe < 3; probe += 1) {
          await rig.clock.advance(300);
          expect(await rig.engine.ready()).toEqual({ ready: false, reason: told });
        }
        broken = false;
        await rig.clock.advance(300);
        expect(await rig.engine.ready()).toEqual({ ready: true, reason: null });
        const probes = rig.logs.filter(({ message }) => /^(not )?ready: /.test(message));
        expect(probes).toMatchObject([
          { level: "warn", fields: { err: error } },
          { level: "info" },
        ]);
      });
    }
  });
});

describe("many slots with long runs in them", () => {
  test("don't keep a worker from claiming again when the ends that waited are recorded", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    const tiny = { name: "tiny", run: () => null };
    let answer: (() => void) | null = null;
    let holds = false;
    const held = {
      ...ledger,
      settle: async (list: Parameters<typeof ledger.settle>[0]) => {
        if (holds) await new Promise<void>((resolve) => (answer = resolve));
        return ledger.settle(list);
      },
    };
    const settings = { maxWorkers: 600, asyncMaxQueue: 10_000 };
    await withRig({ clock, ledger: held, tasks: [slow.options, tiny], settings }, async (rig) => {
      for (let n = 0; n < 560; n += 1) await submitted(rig, "slow");
      await settled();
      holds = true;
      for (let n = 0; n < 2_800; n += 1) await submitted(rig, "tiny");
      await settled(100);
      // Too many ends wait: nothing more is claimed.
      const before = await rig.engine.counts();
      expect(before.running).toBeGreaterThanOrEqual(600 + 2_048);
      expect(before.queued).toBeGreaterThan(0);
      holds = false;
      answer?.();
      await settled(100);
      await rig.clock.advance(2_000);
      expect(await rig.engine.counts()).toMatchObject({ running: 560, queued: 0 });
      for (const call of slow.calls) call.succeed(null);
      await settled(100);
    });
  });
});

describe("a claim that was lost", () => {
  test("F6: a suspended worker's result is refused, its token set, and the new run stands", async () => {
    const { clock, ledger } = connected();
    const here = new HeldTask("slow");
    const there = new HeldTask("slow");
    const options = { ledger, clock, settings: { maxWorkers: 1 } };
    await withRig({ ...options, tasks: [here.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow", { maxAttempts: 2 });
      await settled();
      // Only this worker sleeps: another one finds its job, and runs it again.
      const rescued = await ledger.rescue({
        jobTimeoutMs: SETTINGS.jobTimeoutMs,
        workerTimeoutMs: SETTINGS.workerTimeoutMs,
        goneWorkerIds: [rig.engine.health().workerId ?? ""],
        chunk: 10,
      });
      expect(rescued).toMatchObject([{ jobId, status: "queued" }]);
      const other = createRig({ ...options, tasks: [there.options] });
      // The first worker's hint told it at once that the job is not its own any more.
      await settled();
      expect(here.call(0).ctx.signal.aborted).toBe(true);
      await other.engine.start();
      await settled();
      here.call(0).succeed("stale");
      await settled();
      const runner = (await ledger.get([jobId]))[0];
      expect(runner).toMatchObject({ status: "running", attempt: 2 });
      const [mine, theirs] = [here.calls.length, there.calls.length];
      (theirs === 1 ? there.call(0) : here.call(mine - 1)).succeed("fresh");
      await settled();
      expect((await ledger.result(jobId))?.resultJson).toBe('"fresh"');
      expect(rig.logs.map(({ message }) => message)).toContain(
        "this run's outcome is dropped: the job is no longer this worker's",
      );
      await stopped(other);
    });
  });

  test("F6: is learned from the heartbeat where no hint came", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    const deafLedger = { ...ledger, watch: () => () => undefined };
    await withRig({ ledger: deafLedger, clock, tasks: [slow.options] }, async (rig) => {
      const cancelled = await submitted(rig, "slow");
      const lost = await submitted(rig, "slow");
      await settled();
      await rig.engine.cancel(cancelled);
      const job = await rig.engine.get(lost);
      await ledger.settle([
        { jobId: lost, workerId: job?.workerId ?? "", attempt: 1, end: { event: "stop" } },
      ]);
      await settled();
      expect(slow.call(0).ctx.signal.aborted).toBe(false);
      await rig.clock.advance(10_000);
      expect(slow.call(0).ctx.signal.aborted).toBe(true);
      expect(slow.call(1).ctx.signal.aborted).toBe(true);
    });
  });

  test("F6: a worker that was suspended beats before it sweeps, and fails none of its own jobs", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    await withRig({ ledger, clock, tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await settled();
      await clock.suspend(3_600_000);
      await rig.clock.advance(60_000);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "running", attempt: 1 });
    });
  });

  test("a retry that meets a cancel is counted as cancelled", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow", { maxAttempts: 3 });
    const deafLedger = { ...ledger, watch: () => () => undefined };
    await withRig({ ledger: deafLedger, clock, tasks: [slow.options] }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await settled();
      await rig.engine.cancel(jobId);
      slow.call(0).fail(new Error("not yet"));
      await settled();
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "cancelled", attempt: 1 });
      expect(rig.engine.health()).toMatchObject({ processed: 0, failed: 0, cancelled: 1 });
      expect(rig.logs.find(({ message }) => message === "job ended")?.fields).toMatchObject({
        status: "cancelled",
      });
    });
  });

  test("F16: a job may run for as long as it beats, far beyond job_timeout", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    const settings = { jobTimeoutMs: 60_000, workerTimeoutMs: 60_000, pollIntervalMs: 60_000 };
    await withRig({ ledger, clock, tasks: [slow.options], settings }, async (rig) => {
      const jobId = await submitted(rig, "slow");
      await rig.clock.advance(2 * 3_600_000);
      expect(await rig.engine.get(jobId)).toMatchObject({ status: "running", attempt: 1 });
      slow.call(0).succeed("at last");
      await settled();
      expect((await rig.engine.get(jobId))?.status).toBe("succeeded");
    });
  });
});

describe("jobs claimed ahead", () => {
  const tiny = { name: "tiny", run: () => null };

  test("F10: are bounded, and given back when no slot comes free for them", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1, asyncMaxQueue: 10_000 };
    await withRig({ ledger, clock, tasks: [tiny, slow.options], settings }, async (rig) => {
      for (let n = 0; n < 20; n += 1) await submitted(rig, "tiny");
      await settled();
      const jobs = Array.from({ length: 1_500 }, (_, n) => ({
        jobId: `01ARZ3NDEKTSV4RRFFQ69G${String(n).padStart(4, "0")}`,
        task: "slow",
        schemaVersion: 1,
        payloadJson: encodePayload("slow", "{}"),
      }));
      await ledger.submit(jobs, { maxDepth: 10_000 });
      await settled();
      const { running } = await rig.engine.counts();
      expect(slow.mostRunning).toBe(1);
      expect(running).toBeGreaterThan(1);
      expect(running).toBeLessThanOrEqual(1 + 1_024);
      await rig.clock.advance(150);
      expect(await rig.engine.counts()).toMatchObject({ running: 1, queued: 1_499 });
      // The attempt was given back with them, and nothing more is claimed ahead now.
      slow.call(0).succeed(null);
      await settled();
      const running2 = await rig.engine.list({ statuses: ["running"], limit: 10 });
      expect(running2.jobs.map(({ attempt }) => attempt)).toEqual([1]);
    });
  });

  test("don't keep synchronous requests from their turn", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1, asyncMaxQueue: 10_000 };
    await withRig({ ledger, clock, tasks: [tiny, slow.options], settings }, async (rig) => {
      for (let n = 0; n < 20; n += 1) await submitted(rig, "tiny");
      await settled();
      for (let n = 0; n < 50; n += 1) await submitted(rig, "slow", {}, "job");
      await settled();
      expect((await rig.engine.counts()).running).toBeGreaterThan(10);
      const request = rig.engine.run({ task: "slow", input: "request" });
      // One job's place in the line may be before it, and no more.
      for (let n = 0; n < 2; n += 1) {
        slow.call(n).succeed(n);
        await settled();
      }
      expect(slow.call(2).input).toBe("request");
      slow.call(2).succeed("answer");
      expect(await request).toEqual({ kind: "done", resultJson: '"answer"' });
      expect(slow.mostRunning).toBe(1);
    });
  });

  test("F11: are not timed while they wait, can be cancelled, and go back at a shutdown", async () => {
    const { clock, ledger } = connected();
    const slow = new HeldTask("slow");
    const settings = { maxWorkers: 1, asyncMaxQueue: 10_000 };
    const rig = createRig({ ledger, clock, tasks: [tiny, slow.options], settings });
    await rig.engine.start();
    for (let n = 0; n < 20; n += 1) await submitted(rig, "tiny");
    await settled();
    const ids = await Promise.all([0, 1, 2].map(() => submitted(rig, "slow", { timeoutMs: 50 })));
    await settled();
    expect((await rig.engine.counts()).running).toBe(3);
    await rig.clock.advance(40);
    await rig.engine.cancel(ids[1] ?? "");
    await settled();
    expect((await rig.engine.get(ids[1] ?? ""))?.status).toBe("cancelled");
    slow.call(0).succeed("in time");
    await rig.clock.advance(40);
    expect((await rig.engine.get(ids[0] ?? ""))?.status).toBe("succeeded");
    expect(slow.call(1).ctx.signal.aborted).toBe(false);
    const last = await Promise.all([3, 4].map(() => submitted(rig, "slow")));
    await stopped(rig);
    for (const id of last)
      expect(await ledger.get([id])).toMatchObject([{ status: "queued", attempt: 0 }]);
  });
});

describe("an idle engine", () => {
  test("F36: asks the ledger at most twice a second, whatever the pool's size", async () => {
    const { clock, connection, ledger } = connected();
    const settings = { maxWorkers: 64, asyncTimeoutMs: 300_000 };
    await withRig({ ledger, clock, settings, tasks: [new HeldTask("x").options] }, async (rig) => {
      await rig.clock.advance(30_000);
      const before = connection.total;
      await rig.clock.advance(120_000);
      expect((connection.total - before) / 120).toBeLessThanOrEqual(2);
      expect((connection.calls.claim ?? 0) / 150).toBeGreaterThan(0.9);
    });
  });
});
