/** The product as a library, at its defaults, the admission bound apart: on SQLite in `folder`, or on PostgreSQL at `url`. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createJobtable, task } from "../../../dist/index.js";
import { pause, nowMs } from "../measure.js";
import { given, type Input, type Life, type Peer, type Place } from "./peer.js";

const OUT_OF_REACH = 1_000_000_000;
/** A job that takes longer is taken for lost. */
const PATIENCE_MS = 120_000;

type Opened = ReturnType<typeof openJobtable>;

function openJobtable(place: Place, store: string, onRun: (n: number) => void) {
  const noop = task({
    name: "noop",
    run(received: Input) {
      onRun(received.n);
      return { ok: true };
    },
  });
  return createJobtable({
    store,
    tasks: [noop],
    asyncMaxQueue: place.bound ?? OUT_OF_REACH,
    ...(place.kept === undefined ? {} : { asyncMaxCompleted: place.kept }),
  });
}

export async function open(place: Place): Promise<Peer> {
  let number = 0;
  let listener: (n: number) => void = () => undefined;
  const store = (): string =>
    place.url === undefined
      ? `sqlite:${join(given(place.folder, "folder"), storeName(number))}`
      : place.url + (number === 0 ? "" : `?schema=round_${String(number)}`);
  const reopen = (): Opened => openJobtable(place, store(), (n) => listener(n));
  let jobtable = reopen();
  return {
    submit: (given) => jobtable.submit("noop", given),
    async submitMany(inputs) {
      const jobs = await jobtable.submitMany(
        inputs.map((received) => ({ task: "noop" as const, input: received })),
      );
      return jobs.map(({ jobId }) => jobId);
    },
    async work(onRun) {
      listener = onRun;
      await jobtable.start();
      return async () => {
        await jobtable.stop();
        jobtable = reopen();
      };
    },
    async unfinished() {
      const { queued, running } = await jobtable.counts();
      return queued + running;
    },
    recorded: async () => (await jobtable.counts()).total,
    async wipe() {
      await jobtable.stop();
      if (place.folder !== undefined)
        for (const suffix of ["", "-wal", "-shm"])
          rmSync(join(place.folder, storeName(number) + suffix), { force: true });
      number += 1;
      jobtable = reopen();
      await jobtable.counts();
    },
    async cancel(ids, perSecond) {
      const began = nowMs();
      const ends: Promise<unknown>[] = [];
      for (const id of ids) {
        while (perSecond > 0 && ends.length > ((nowMs() - began) / 1_000) * perSecond)
          await pause(1);
        ends.push(jobtable.cancel(id));
      }
      await Promise.all(ends);
    },
    async life(received): Promise<Life> {
      const called = nowMs();
      const job = await jobtable.submit("noop", received);
      const answered = nowMs();
      const last = await jobtable.wait(job, { timeoutMs: PATIENCE_MS });
      if (last?.status !== "succeeded")
        throw new Error(`job ${job.jobId} is ${last?.status ?? "not known"}`);
      return { called, answered, ended: nowMs() };
    },
    close: () => jobtable.stop(),
  };
}

function storeName(number: number): string {
  return number === 0 ? "jobs.db" : `jobs-${String(number)}.db`;
}
