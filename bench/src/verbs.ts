/** What an actor does with its peer when asked; each checks its own work, since a figure of jobs that were not run means nothing. */
import { nowMs, pause, until } from "./measure.js";
import { input, type Life, type Peer } from "./peers/peer.js";

const IN_FLIGHT = 64;
const BULK = 1_000;
/** Between two submits of the latency benchmark: long enough that everything is idle again. */
const PAUSE_MS = 20;

/** Every verb by its name, arguments and answers being JSON. */
export function verbsOf(peer: Peer, tell: (run: { n: number; at: number }) => void) {
  let stopWork: (() => Promise<void>) | null = null;
  let runs = 0;
  return {
    /** @returns jobs per second, 64 at a time, for `ms`. */
    submitFor: (ms: number): Promise<number> => submitFor(peer, ms),
    /** @returns jobs per second of `count` jobs, 64 at a time. */
    submitCount: (count: number): Promise<number> => submitCount(peer, count),
    /** @returns the ids where the peer tells them. */
    fill: (count: number): Promise<readonly string[]> => fill(peer, count),
    drain: (count: number): Promise<number> => drain(peer, count),
    /** @returns µs of one job's life, of jobs with an input of `bytes`, together about `total` bytes. */
    lifeWith: (bytes: number, total: number): Promise<number> => lifeWith(peer, bytes, total),
    latencies: (count: number): Promise<number[]> => latencies(peer, count),
    /** @returns what became of `count` jobs, submitted at an even pace whatever the answers take. */
    steady: (first: number, count: number, perSecond: number) =>
      steady(peer, first, count, perSecond),
    /** @returns when the submit was called and answered, ms of the shared clock. */
    async submitOne(n: number): Promise<{ called: number; answered: number }> {
      const called = nowMs();
      await peer.submit(input(n));
      return { called, answered: nowMs() };
    },
    /** @param telling of each handler's start from now on; they are counted anyhow. */
    async work(telling: boolean): Promise<null> {
      stopWork = await peer.work((n) => {
        runs += 1;
        if (telling) tell({ n, at: nowMs() });
      });
      return null;
    },
    runs: async () => runs,
    async stopWork(): Promise<null> {
      await stopWork?.();
      stopWork = null;
      return null;
    },
    async cancel(ids: readonly string[], perSecond: number): Promise<null> {
      if (peer.cancel === undefined) throw new Error("this peer can't cancel");
      await peer.cancel(ids, perSecond);
      return null;
    },
    recorded: () => peer.recorded(),
    unfinished: () => peer.unfinished(),
    async wipe(): Promise<null> {
      await peer.wipe();
      return null;
    },
  };
}

export type Verbs = ReturnType<typeof verbsOf>;

async function submitFor(peer: Peer, ms: number): Promise<number> {
  const before = await peer.recorded();
  const began = nowMs();
  let count = 0;
  await lanes(async () => {
    while (nowMs() - began < ms) await peer.submit(input(count++));
  });
  const tookMs = nowMs() - began;
  await expectRecorded(peer, before + count);
  return (count / tookMs) * 1_000;
}

async function submitCount(peer: Peer, count: number, template?: string): Promise<number> {
  const before = await peer.recorded();
  const began = nowMs();
  let next = 0;
  await lanes(async () => {
    while (next < count) {
      const given = input(next++);
      await peer.submit(template === undefined ? given : { ...given, template });
    }
  });
  const tookMs = nowMs() - began;
  await expectRecorded(peer, before + count);
  return (count / tookMs) * 1_000;
}

async function steady(peer: Peer, first: number, count: number, perSecond: number) {
  if (peer.life === undefined) throw new Error("this peer can't tell of a job's end");
  const began = nowMs();
  const lives: Promise<Life | { readonly failed: unknown }>[] = [];
  while (lives.length < count) {
    if (lives.length >= ((nowMs() - began) / 1_000) * perSecond) await pause(1);
    else
      lives.push(peer.life(input(first + lives.length)).catch((failed: unknown) => ({ failed })));
  }
  const times = { called: [] as number[], answered: [] as number[], ended: [] as number[] };
  for (const life of await Promise.all(lives)) {
    if ("failed" in life) throw life.failed;
    times.called.push(life.called);
    times.answered.push(life.answered);
    times.ended.push(life.ended);
  }
  return times;
}

async function lanes(lane: () => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
}

async function expectRecorded(peer: Peer, expected: number): Promise<void> {
  const recorded = await peer.recorded();
  if (recorded !== expected)
    throw new Error(`${String(recorded)} jobs are on record, not ${String(expected)}`);
}

async function fill(peer: Peer, count: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let first = 0; first < count; first += BULK) {
    const length = Math.min(BULK, count - first);
    ids.push(...(await peer.submitMany(Array.from({ length }, (_, at) => input(first + at)))));
  }
  return ids;
}

/** @returns jobs per second from the start of a worker until every end is on record. The store must hold `count` waiting jobs. */
async function drain(peer: Peer, count: number): Promise<number> {
  const waiting = await peer.unfinished();
  if (waiting !== count)
    throw new Error(`${String(waiting)} jobs wait for the drain, not ${String(count)}`);
  const seen = new Uint8Array(count);
  let runs = 0;
  let started = (): void => undefined;
  const allStarted = new Promise<void>((resolve) => (started = resolve));
  const began = nowMs();
  const stop = await peer.work((n) => {
    seen[n] = (seen[n] ?? 0) + 1;
    if (++runs === count) started();
  });
  await allStarted;
  await until("the end of all jobs", async () => (await peer.unfinished()) === 0, { everyMs: 1 });
  const tookMs = nowMs() - began;
  await stop();
  if (runs !== count || !seen.every((times) => times === 1))
    throw new Error(`${String(runs)} runs of ${String(count)} jobs, or one ran twice`);
  return (count / tookMs) * 1_000;
}

const MOST_JOBS = 5_000;

async function lifeWith(peer: Peer, bytes: number, total: number): Promise<number> {
  const count = Math.min(MOST_JOBS, Math.max(2, Math.ceil(total / bytes)));
  const template = "x".repeat(Math.max(0, bytes - JSON.stringify(input(0)).length));
  const submits = await submitCount(peer, count, template);
  return 1e6 / submits + 1e6 / (await drain(peer, count));
}

/** @returns ms from the call of submit to the handler's first line, all in this process, one job at a time. */
async function latencies(peer: Peer, count: number): Promise<number[]> {
  let started: (at: number) => void = () => undefined;
  const stop = await peer.work(() => started(nowMs()));
  const taken: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const start = new Promise<number>((resolve) => (started = resolve));
    const called = nowMs();
    await peer.submit(input(n));
    taken.push((await start) - called);
    await pause(PAUSE_MS);
  }
  await until("the end of all jobs", async () => (await peer.unfinished()) === 0);
  await stop();
  return taken;
}
