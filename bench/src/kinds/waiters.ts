/**
 * Many requests in `/wait` on one server: P8. Their jobs are ended by another process, as by a worker
 * elsewhere: cancelled while they wait, since that takes no slot, 1,000 a second and all at once. An
 * answer's time counts from the end that stands in the record (`finished_at`), the commit included;
 * when all end at once, from the first of these.
 */
import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Ground } from "../ground.js";
import { listening, serveProduct, WITH_GC, type Served } from "../http/served.js";
import { needProc, residentBytes } from "../linux.js";
import { pause, percentile, until } from "../measure.js";
import { Missing } from "../missing.js";
import { figure, inTurn, versus, type Row, type Series } from "../row.js";
import type { Answer, FromClient } from "../waiters/client.js";

const PER_SECOND = 1_000;
const KIB = 1_024;
const SETTLE_MS = 500;
/** Files of a process beside its connections. */
const OTHER_FILES = 200;

interface Waited {
  /** Of one waiter, in the server. */
  readonly bytes: number;
  /** ms from end to answer. */
  readonly delays: readonly number[];
}

/** The same with fewer and more of them, without goals. */
export async function growthOfWaiters(ground: Ground): Promise<Row[]> {
  const rows: Row[] = [];
  for (const waiters of ground.effort.waiterCounts)
    rows.push(
      ...(await waiting(ground, waiters)).map((row) => ({ ...row, target: null, met: null })),
    );
  return rows;
}

export function manyWaiters(ground: Ground): Promise<Row[]> {
  return waiting(ground, ground.effort.waiters);
}

async function waiting(ground: Ground, waiters: number): Promise<Row[]> {
  needProc();
  needFiles(waiters + OTHER_FILES);
  const paced = await productRound(ground, waiters, PER_SECOND);
  const [mine = [], floor = []] = await inTurn(ground.effort.waiterRounds, [
    () => productRound(ground, waiters, 0),
    () => floorRound(waiters),
  ]);
  const what = `${String(waiters)} requests in /wait on one server (SQLite FULL)`;
  const p99 = (rounds: readonly Waited[]): number[] =>
    rounds.map(({ delays }) => percentile(delays, 0.99));
  const kib = (rounds: readonly Waited[]): number[] => rounds.map(({ bytes }) => bytes / KIB);
  const series = (name: string, line: string, rounds: readonly number[]): Series => ({
    name,
    rounds,
    at: { line, x: waiters },
  });
  const product = "jobtable serve";
  const peer = "bare Fastify, parked replies";
  const atOnce = `${what}: all ending at once, to the answer, p99; none lost`;
  return [
    figure({
      what: `${what}: jobs ending at 1,000/s, from end to answer, p99; none lost`,
      unit: "ms",
      series: series(product, `${product}, 1,000 ending a second`, p99([paced])),
      target: { atMost: 50 },
    }),
    versus(
      { what: atOnce, unit: "ms" },
      series(product, `${product}, all ending at once`, p99(mine)),
      series(peer, `${peer}, all at once`, p99(floor)),
      { atMost: 1.3 },
    ),
    figure({
      what: `${what}: memory of one waiter`,
      unit: "KiB",
      series: { name: product, rounds: kib([paced, ...mine]) },
      target: { atMost: 14 },
    }),
    versus(
      { what: `${what}: memory of one waiter`, unit: "KiB" },
      series(product, product, kib(mine)),
      series(peer, peer, kib(floor)),
      undefined,
    ),
  ];
}

/** @param perSecond how many jobs end; 0: all at once. */
async function productRound(ground: Ground, waiters: number, perSecond: number): Promise<Waited> {
  const place = ground.sqlite();
  const owner = await ground.actor("jobtable", place);
  const ids = await owner.call("fill", waiters);
  const server = await serveProduct(place, ["--no-worker"], WITH_GC);
  try {
    const urls = ids.map((id) => `${server.url}/jobs/job_${id}/wait?timeout=300000`);
    const parking = await park(server, urls);
    await owner.call("cancel", ids, perSecond);
    const answers = await parking.answers;
    const ends = answers.map(({ status, body }) => {
      const { state, finished_at } = JSON.parse(body) as { state: string; finished_at: string };
      if (status !== 200 || state !== "cancelled")
        throw new Error(`a wait was answered ${String(status)} ${body}`);
      return Date.parse(finished_at);
    });
    const first = ends.reduce((least, end) => Math.min(least, end), Infinity);
    const delays = answers.map(
      ({ at }, index) => at - (perSecond === 0 ? first : (ends[index] ?? Number.NaN)),
    );
    return { bytes: parking.bytes, delays };
  } finally {
    await server.stop();
    await owner.stop();
  }
}

async function floorRound(waiters: number): Promise<Waited> {
  const script = join(import.meta.dirname, "../waiters/parked.js");
  const server = await listening(process.execPath, [...WITH_GC, script]);
  try {
    const parking = await park(
      server,
      Array.from({ length: waiters }, () => `${server.url}/wait`),
    );
    const { parked } = (await (await fetch(`${server.url}/parked`)).json()) as { parked: number };
    if (parked !== waiters) throw new Error(`${String(parked)} of ${String(waiters)} are parked`);
    const go = await fetch(`${server.url}/go`, { method: "POST" });
    const { at } = (await go.json()) as { at: number };
    return {
      bytes: parking.bytes,
      delays: (await parking.answers).map((answer) => answer.at - at),
    };
  } finally {
    await server.stop();
  }
}

/** Sends all requests and looks at the server's memory before and after, garbage collected. */
async function park(
  server: Served,
  urls: readonly string[],
): Promise<{ readonly bytes: number; readonly answers: Promise<readonly Answer[]> }> {
  const client = fork(join(import.meta.dirname, "../waiters/client.js"), { execArgv: [] });
  let sent = false;
  const answers = new Promise<readonly Answer[]>((resolve, reject) => {
    client.on("message", (message: FromClient) => {
      if ("sent" in message) sent = true;
      else resolve(message.answers);
    });
    client.once("exit", (code) => {
      reject(new Error(`the client ended with ${String(code)}: a request was lost`));
    });
  }).finally(async () => {
    client.removeAllListeners("exit");
    const gone = once(client, "exit");
    client.disconnect();
    await gone;
  });
  let lost: unknown = null;
  answers.catch((error: unknown) => (lost = error));
  const before = await collected(server);
  client.send(urls);
  await until("all requests sent", () => {
    if (lost !== null) throw new Error("the client ended", { cause: lost });
    return sent;
  });
  const bytes = (await collected(server)) - before;
  return { bytes: bytes / urls.length, answers };
}

async function collected(server: Served): Promise<number> {
  await pause(SETTLE_MS);
  process.kill(server.pid, "SIGUSR2");
  await pause(SETTLE_MS);
  // An answer means that the collection is over, and that what came before this is parked.
  await fetch(server.url);
  return residentBytes(server.pid);
}

/** @throws Missing where a process may not hold so many connections. Node itself goes to the hard limit. */
function needFiles(files: number): void {
  const { stdout } = spawnSync("sh", ["-c", "ulimit -Hn"], { encoding: "utf8" });
  if (Number(stdout) < files)
    throw new Missing(`a higher limit of open files: ulimit -n ${String(files)}`);
}
