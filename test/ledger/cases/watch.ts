/** Promise 3, the wake-up: whoever subscribes before it looks misses nothing. */
import { expect } from "vitest";
import { isTerminal } from "../../../src/job/state.js";
import type { Ledger } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  beat,
  Bell,
  claim,
  claimOf,
  claimOne,
  jobIn,
  newJobs,
  OTHER_WORKER,
  PATIENT,
  present,
  releaseOf,
  retryIn,
  see,
  settleOne,
  SUCCEED,
  waitUntil,
  WORKER,
} from "../acts.js";
import type { Cases } from "../harness.js";

export function watchCases(cases: Cases): void {
  changeCases(cases);
  listenerCases(cases);
  manyCases(cases);
  workCases(cases);
}

function changeCases({ check, checkShared }: Cases): void {
  /** Each change of a job is heard, and is there to be seen when it is. */
  const everyChange = async (watcher: Ledger, actor: Ledger): Promise<void> => {
    const { jobId } = await acceptOne(actor, { maxAttempts: 4 });
    const seen: string[] = [];
    const follow = async (
      act: () => Promise<unknown>,
      done: Parameters<typeof waitUntil>[2],
    ): Promise<void> => {
      const told = waitUntil(watcher, jobId, done);
      await act();
      const job = await told;
      seen.push(job === null ? "forgotten" : job.status);
    };
    const end = async (event: Parameters<typeof settleOne>[2]): Promise<void> => {
      expect(await settleOne(actor, claimOf(await see(actor, jobId)), event)).toBe(true);
    };
    const claimIt = (): Promise<unknown> => claimOne(actor);
    await follow(claimIt, (job) => job?.status === "running");
    await follow(
      () => end(retryIn(0)),
      (job) => job?.status === "queued",
    );
    await follow(claimIt, (job) => job?.status === "running" && job.attempt === 2);
    await follow(
      async () => end(releaseOf({ job: await see(actor, jobId), payloadJson: "{}" })),
      (job) => job?.status === "queued",
    );
    await follow(
      () => claimOne(actor, OTHER_WORKER),
      (job) => job?.workerId === OTHER_WORKER,
    );
    await follow(
      () => actor.rescue({ ...PATIENT, goneWorkerIds: [OTHER_WORKER] }),
      (job) => job?.status === "queued",
    );
    await follow(claimIt, (job) => job?.workerId === WORKER);
    await follow(
      () => actor.cancel([jobId]),
      (job) => job?.cancelRequestedAtMs !== null,
    );
    await follow(
      () => end({ event: "stop" }),
      (job) => job?.status === "cancelled",
    );
    await follow(
      () => actor.evict({ ttlMs: -1, keep: 0, chunk: 10 }),
      (job) => job === null,
    );
    expect(seen.join(" ")).toBe(
      "running queued running queued running queued running running cancelled forgotten",
    );
  };
  check("every change of a job wakes its watchers", (h) => everyChange(h.ledger, h.ledger));
  checkShared("every change of a job wakes its watchers", async (h) =>
    everyChange(h.ledger, await h.second()),
  );

  checkShared("every change of a job among many wakes its watchers", async (h) => {
    const others = await accept(h.ledger, newJobs(600, { task: "other" }));
    for (const { jobId } of others) h.ledger.watch(jobId, () => undefined);
    await everyChange(h.ledger, await h.second());
  });

  check("the ends of waiting jobs wake their watchers", async (h) => {
    const jobs = await accept(h.ledger, newJobs(3));
    const [cancelled, ...others] = jobs.map((job) =>
      waitUntil(h.ledger, job.jobId, (seen) => seen !== null && isTerminal(seen.status)),
    );
    await h.ledger.cancel([present(jobs[0]).jobId]);
    expect((await cancelled)?.status).toBe("cancelled");
    await h.age(120_000);
    expect(await h.ledger.expire({ waitLimitMs: 60_000, chunk: 1 })).toBe(1);
    await h.ledger.heartbeat(beat(WORKER, { tasks: ["other"] }), []);
    const limit = { workerId: WORKER, graceMs: 60_000, workerTimeoutMs: 60_000, chunk: 1 };
    expect(await h.ledger.reject(limit)).toBe(1);
    const statuses = (await Promise.all(others)).map((job) => job?.status);
    expect(statuses.sort()).toEqual(["failed", "timed_out"]);
  });
}

function listenerCases({ check }: Cases): void {
  check("a listener hears its own job only, and nothing after it has left", async (h) => {
    const [a, b] = await accept(h.ledger, newJobs(2));
    const [bellA, bellB, gone] = [new Bell(), new Bell(), new Bell()];
    const stopA = h.ledger.watch(present(a).jobId, bellA.ring);
    h.ledger.watch(present(b).jobId, bellB.ring);
    const leave = h.ledger.watch(present(a).jobId, gone.ring);
    leave();
    leave();
    const heard = bellA.heard();
    await h.ledger.cancel([present(a).jobId]);
    await heard;
    stopA();
    const rings = bellA.rings;
    const heardB = bellB.heard();
    await h.ledger.cancel([present(b).jobId]);
    await heardB;
    expect(gone.rings).toBe(0);
    expect(bellA.rings).toBe(rings);
  });

  check("the same function twice is two listeners", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    const bell = new Bell();
    const leave = h.ledger.watch(jobId, bell.ring);
    h.ledger.watch(jobId, bell.ring);
    leave();
    const heard = bell.heard();
    await h.ledger.cancel([jobId]);
    await heard;
    expect(bell.rings).toBeGreaterThan(0);
  });

  check("a listener that throws breaks neither the ledger nor the others", async (h) => {
    const broken = (): void => {
      throw new Error("a listener's own fault");
    };
    const bell = new Bell();
    const workBell = new Bell();
    h.ledger.onWork(broken);
    h.ledger.onWork(workBell.ring);
    const work = workBell.heard();
    const { jobId } = await acceptOne(h.ledger);
    await work;
    h.ledger.watch(jobId, broken);
    h.ledger.watch(jobId, bell.ring);
    const heard = bell.heard();
    const [outcome] = await h.ledger.cancel([jobId]);
    expect(outcome?.kind).toBe("cancelled");
    await heard;
    expect((await see(h.ledger, jobId)).status).toBe("cancelled");
  });

  check("a listener may call the ledger, and leave, from where it is", async (h) => {
    const { jobId } = await acceptOne(h.ledger);
    const answer = new Promise<string | undefined>((resolve, reject) => {
      const leave = h.ledger.watch(jobId, () => {
        leave();
        h.ledger.get([jobId]).then(([job]) => resolve(job?.status), reject);
      });
    });
    await h.ledger.cancel([jobId]);
    expect(await answer).toBe("cancelled");
  });
}

function manyCases({ check, checkShared }: Cases): void {
  const MANY = 2_000;
  /** Zero-length jobs, each with a waiter: a lost wake-up would leave one waiting for ever. */
  const noneLost = async (waiting: Ledger, working: Ledger): Promise<void> => {
    const ended = waiting.submit(newJobs(MANY), { maxDepth: MANY }).then((outcomes) =>
      Promise.all(
        outcomes.map((outcome) => {
          if (outcome.kind !== "accepted") throw new Error("refused below the bound");
          const { jobId } = outcome.job;
          return waitUntil(waiting, jobId, (job) => job !== null && isTerminal(job.status));
        }),
      ),
    );
    const bell = new Bell();
    const leave = working.onWork(bell.ring);
    let done = 0;
    while (done < MANY) {
      const work = bell.heard();
      const claimed = await claim(working, 64);
      if (claimed.length === 0) {
        await work;
        continue;
      }
      const answers = await working.settle(
        claimed.map(({ job }) => ({ ...claimOf(job), end: SUCCEED })),
      );
      expect(answers).toEqual(claimed.map(() => "succeeded"));
      done += claimed.length;
    }
    leave();
    const statuses = (await ended).map((job) => job?.status);
    expect(statuses).toEqual(Array.from({ length: MANY }, () => "succeeded"));
  };
  check("2,000 zero-length jobs with a waiter each: none waits for ever", (h) =>
    noneLost(h.ledger, h.ledger),
  );
  checkShared("2,000 zero-length jobs with a waiter each: none waits for ever", async (h) =>
    noneLost(h.ledger, await h.second()),
  );
}

function workCases({ check, checkShared }: Cases): void {
  const wakes = async (listening: Ledger, acting: Ledger): Promise<void> => {
    const bell = new Bell();
    const leave = listening.onWork(bell.ring);
    const afterRing = async (act: () => Promise<unknown>): Promise<void> => {
      const heard = bell.heard();
      await act();
      await heard;
    };
    await afterRing(() => acceptOne(acting, { maxAttempts: 5 }));
    const first = await claimOne(acting);
    await afterRing(() => settleOne(acting, claimOf(first.job), releaseOf(first)));
    const second = await claimOne(acting);
    await afterRing(() => settleOne(acting, claimOf(second.job), retryIn(0)));
    await claimOne(acting);
    await afterRing(() => acting.rescue({ ...PATIENT, goneWorkerIds: [WORKER] }));
    leave();
    leave();
    const rings = bell.rings;
    await acceptOne(listening);
    expect(bell.rings).toBe(rings);
    expect(rings).toBeGreaterThanOrEqual(4);
  };
  check("submit, release, retry and rescue wake those who look for work", (h) =>
    wakes(h.ledger, h.ledger),
  );
  checkShared("submit, release, retry and rescue wake those who look for work", async (h) =>
    wakes(h.ledger, await h.second()),
  );

  check("when work is heard of, it is there to be claimed", async (h) => {
    const claimed = new Promise<number>((resolve, reject) => {
      h.ledger.onWork(() => {
        claim(h.ledger, 10).then((jobs) => {
          if (jobs.length > 0) resolve(jobs.length);
        }, reject);
      });
    });
    await accept(h.ledger, newJobs(3));
    expect(await claimed).toBe(3);
  });

  check("every kind of ledger says what it is", async (h) => {
    expect(["memory", "sqlite", "postgres"]).toContain(h.ledger.kind);
    expect((await jobIn(h.ledger, "queued")).job.status).toBe("queued");
  });
}
