import { describe, expect, test } from "vitest";
import { SETTINGS } from "../../test/engine-rig.js";
import { job } from "../../test/http/scripted-engine.js";
import type { Job } from "../job/job.js";
import type { LedgerReport, WorkerRecord } from "../ledger/ledger.js";
import { isLost, problemsOf, type Look } from "./problems.js";

const NOW_MS = Date.UTC(2026, 0, 1);
const SECOND = 1_000;
const MINUTE = 60 * SECOND;

function worker(changes: Partial<WorkerRecord> = {}): WorkerRecord {
  return {
    workerId: "worker-00000001",
    host: "box/boot/ns",
    pid: 42,
    pidStamp: "",
    state: "running",
    tasks: ["ocr"],
    maxWorkers: 2,
    processed: 0,
    failed: 0,
    cancelled: 0,
    startedAtMs: NOW_MS - MINUTE,
    lastHeartbeatMs: NOW_MS - SECOND,
    ...changes,
  };
}

/** A job that has waited so long. */
function waiting(ageMs: number, changes: Partial<Job> = {}): Job {
  return job({ createdAtMs: NOW_MS - ageMs, runAtMs: NOW_MS - ageMs, ...changes });
}

interface Scene {
  readonly report?: Partial<LedgerReport>;
  readonly look?: Partial<Look>;
}

/** A ledger at which nothing is wrong, with what a test changes. */
function scene({ report = {}, look = {} }: Scene = {}): Look {
  return {
    settings: { ...SETTINGS, asyncMaxQueue: 4, asyncTimeoutMs: 5 * MINUTE },
    latencyMs: 2,
    localNowMs: NOW_MS,
    dispatchFault: null,
    maintenanceFault: null,
    ...look,
    report: {
      nowMs: NOW_MS,
      software: "SQLite 3.50.0",
      schemaVersion: 3,
      counts: { queued: 0, running: 0, total: 7, oldestQueuedMs: null },
      workers: [worker()],
      oldestQueued: null,
      stuck: [],
      waiting: [],
      ...report,
    },
  };
}

const queued = (count: number, running = 0): LedgerReport["counts"] => ({
  queued: count,
  running,
  total: count + running,
  oldestQueuedMs: 0,
});

/** The one problem, or none. */
function only(changes: Scene): string {
  const problems = problemsOf(scene(changes));
  for (const { message } of problems) expect(message).not.toContain("\n");
  return problems.map(({ kind, message }) => `${kind}: ${message}`).join("\n");
}

test("where all is well there are none", () => {
  expect(only({})).toBe("");
  expect(
    only({
      report: {
        counts: queued(1, 2),
        oldestQueued: waiting(4 * MINUTE),
        waiting: [{ task: "ocr", queued: 1 }],
      },
    }),
  ).toBe("");
  expect(only({ report: { workers: [] } })).toBe("");
});

describe("nobody runs what waits", () => {
  const due = { oldestQueued: waiting(2 * SECOND) };

  test("no worker lives", () => {
    const lost = worker({ lastHeartbeatMs: NOW_MS - MINUTE });
    for (const workers of [[], [lost]])
      expect(only({ report: { ...due, counts: queued(3), workers } })).toBe(
        "no_worker: 3 jobs wait and no worker lives; start one: jobtable worker TASKS, or jobtable serve TASKS",
      );
  });

  test("every living one is on its way out", () => {
    expect(
      only({ report: { ...due, counts: queued(1), workers: [worker({ state: "draining" })] } }),
    ).toMatch(/^no_worker: 1 job waits and every living worker is shutting down; /);
  });

  test("no living one runs that task", () => {
    const report = {
      ...due,
      counts: queued(3),
      workers: [worker(), worker({ state: "draining", tasks: ["primes"] })],
      waiting: [
        { task: "ocr", queued: 1 },
        { task: "primes", queued: 2 },
      ],
    };
    expect(only({ report })).toMatch(
      /^unserved_task: 2 jobs of task primes wait and no living worker runs it; start a worker/,
    );
  });
});

test("of many of one kind a few are named, and the others counted", () => {
  const due = { oldestQueued: waiting(2 * SECOND), counts: queued(3) };
  const many = [...Array(9).keys()];
  const kinds = (report: Partial<LedgerReport>): string[] =>
    problemsOf(scene({ report })).map(({ kind, message }) => `${kind}: ${message}`);
  const unserved = kinds({
    ...due,
    waiting: many.map((n) => ({ task: `t${n}`, queued: 9 - n })),
  });
  expect(unserved).toHaveLength(6);
  expect(unserved[4]).toMatch(/^unserved_task: 5 jobs of task t4 wait/);
  expect(unserved[5]).toBe(
    "unserved_task: and 4 more tasks with jobs that wait, which no living worker runs",
  );
  const ahead = many.map(() => worker({ lastHeartbeatMs: NOW_MS + MINUTE }));
  expect(kinds({ workers: ahead })[5]).toBe(
    "clock: and 4 more workers whose last heartbeat lies in the future",
  );
  const gone = many.map((n) => worker({ workerId: `gone-${n}`, lastHeartbeatMs: NOW_MS - MINUTE }));
  const stuck = gone.map(({ workerId }) => job({ status: "running", workerId }));
  expect(kinds({ workers: gone, stuck })).toHaveLength(6);
  expect(kinds({ workers: gone, stuck })[5]).toBe(
    "lost_worker: and 4 more silent workers that hold jobs",
  );
});

test("what is not due yet needs no worker", () => {
  expect(only({ report: { counts: queued(1), workers: [], oldestQueued: null } })).toBe("");
});

describe("workers that are gone", () => {
  const gone = worker({ workerId: "worker-dead", lastHeartbeatMs: NOW_MS - 5 * MINUTE });
  const stuck = [1, 2, 3, 4, 5, 6, 7].map((last) =>
    job({ jobId: `01J0000000000000000000000${last}`, status: "running", workerId: "worker-dead" }),
  );

  test("one that holds jobs, and who frees them", () => {
    const [first = job()] = stuck;
    expect(only({ report: { workers: [worker(), gone], stuck: [first] } })).toBe(
      "lost_worker: worker-dead (box, pid 42) has been silent for 5 min and holds job_01J00000000000000000000001; a living worker frees them within seconds; if they stay, look at its log",
    );
    expect(only({ report: { workers: [gone], stuck: [first] } })).toMatch(
      /; start a worker: it frees them$/,
    );
  });

  test("more jobs than anyone reads are counted", () => {
    expect(only({ report: { workers: [worker(), gone], stuck } })).toMatch(
      /holds job_\w+(, job_\w+){4} and 2 more; /,
    );
  });

  test("one that holds none is no problem, but is lost", () => {
    const look = scene({ report: { workers: [worker(), gone] } });
    expect(problemsOf(look)).toEqual([]);
    expect(look.report.workers.map((one) => isLost(one, look))).toEqual([false, true]);
  });

  test("jobs without a beat whose worker lives, or has no record", () => {
    const orphan = { ...(stuck[0] ?? job()), workerId: "worker-unknown" };
    const silent = { ...(stuck[1] ?? job()), workerId: worker().workerId };
    expect(only({ report: { stuck: [orphan, silent] } })).toMatch(
      /^stuck_jobs: running jobs without a heartbeat: job_\w+, job_\w+; a living worker frees/,
    );
  });
});

describe("the queue", () => {
  test("is full at its bound, not before", () => {
    expect(only({ report: { counts: queued(1, 2) } })).toBe("");
    expect(only({ report: { counts: queued(2, 2) } })).toMatch(
      /^queue_full: 4 jobs wait or run and async_max_queue is 4: new ones are refused; /,
    );
  });

  test("is closed where it admits nothing", () => {
    expect(only({ look: { settings: { ...SETTINGS, asyncMaxQueue: 0 } } })).toBe(
      "queue_full: async_max_queue is 0: every new job is refused; raise it",
    );
  });
});

describe("a job that waits too long", () => {
  const report = (ageMs: number, running = 0): Partial<LedgerReport> => ({
    counts: queued(1, running),
    oldestQueued: waiting(ageMs),
  });

  test("although slots are free", () => {
    expect(only({ report: report(14 * SECOND) })).toBe("");
    expect(only({ report: report(20 * SECOND, 1) })).toMatch(
      /^idle_workers: job_\w+ \(task ocr\) has waited 20 s although 1 of 2 slots run no job; /,
    );
    expect(only({ report: report(20 * SECOND, 2) })).toBe("");
    const slow = { ...SETTINGS, pollIntervalMs: 3 * SECOND };
    expect(only({ report: report(29 * SECOND), look: { settings: slow } })).toBe("");
    expect(only({ report: report(31 * SECOND), look: { settings: slow } })).not.toBe("");
  });

  test("but not one that is not due yet, or that was queued again just now", () => {
    const later = waiting(10 * MINUTE, { runAtMs: NOW_MS + MINUTE });
    const again = waiting(10 * MINUTE, { runAtMs: NOW_MS - SECOND });
    for (const oldestQueued of [later, again])
      expect(only({ report: { counts: queued(1), oldestQueued } })).toBe("");
  });

  test("longer than async_timeout, and nobody ended it", () => {
    expect(only({ report: report(5 * MINUTE + 20 * SECOND, 2) })).toBe("");
    expect(only({ report: report(7 * MINUTE) })).toMatch(
      /^overdue: job_\w+ \(task ocr\) has waited 7 min, longer than async_timeout \(5 min\)/,
    );
    const unlimited = { ...SETTINGS, asyncTimeoutMs: 0 };
    expect(only({ report: report(7 * MINUTE, 2), look: { settings: unlimited } })).toBe("");
  });
});

describe("the ledger itself", () => {
  test("answers slowly", () => {
    expect(only({ look: { latencyMs: 1_000 } })).toBe("");
    expect(only({ look: { latencyMs: 2_340 } })).toMatch(/^slow_ledger: the ledger took 2\.3 s /);
  });

  test("has another time than this machine", () => {
    expect(only({ look: { localNowMs: NOW_MS + 4_900 } })).toBe("");
    expect(only({ look: { localNowMs: NOW_MS + 42 * SECOND } })).toMatch(
      /^clock: this machine's clock is 42 s ahead of the ledger's; /,
    );
    expect(only({ look: { localNowMs: NOW_MS - 42 * SECOND } })).toMatch(/ 42 s behind the /);
    const slow = { localNowMs: NOW_MS + 6 * SECOND, latencyMs: 2 * SECOND };
    expect(only({ look: slow })).not.toContain("clock");
  });

  test("has seen heartbeats from the future", () => {
    const ahead = worker({ lastHeartbeatMs: NOW_MS + 3 * 60 * MINUTE });
    expect(only({ report: { workers: [ahead] } })).toMatch(
      /^clock: the last heartbeat of worker-00000001 lies 3 h in the future: /,
    );
  });

  test("can't be reached by this process's worker", () => {
    expect(only({ look: { dispatchFault: "the ledger's disk is full" } })).toMatch(
      /^dispatch_down: the worker of this process is cut off: the ledger's disk is full; /,
    );
  });

  test("does not let this process's maintenance do its work", () => {
    const maintenanceFault = "the ledger's disk is full";
    expect(only({ look: { maintenanceFault } })).toMatch(
      /^maintenance_down: this process can't clear away jobs .*: the ledger's disk is full; /,
    );
    expect(only({ look: { maintenanceFault, dispatchFault: "away" } })).toMatch(/^dispatch_down: /);
  });
});

test("several at once, the gravest first", () => {
  const look = scene({
    report: { counts: queued(9), workers: [], oldestQueued: waiting(2 * SECOND) },
    look: { latencyMs: 3_000, dispatchFault: "the ledger can't be reached" },
  });
  expect(problemsOf(look).map(({ kind }) => kind)).toEqual([
    "dispatch_down",
    "slow_ledger",
    "no_worker",
    "queue_full",
  ]);
});
