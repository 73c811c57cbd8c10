/**
 * One scenario on one store, from an empty ledger to balanced books. Processes, server, disk and folder
 * are gone when it is over, whatever happened; where the books do not balance, the folder with the
 * logs, the journal and a list of all that is wrong is kept for whoever looks into it.
 */
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ledger } from "../../src/ledger/ledger.js";
import { SeededRandom } from "../sim/seeded-random.js";
import { balance } from "./books/balance.js";
import { readLedger, type Books } from "./books/books.js";
import { diagnose } from "./books/diagnostics.js";
import { readJournal } from "./books/journal.js";
import { newsDelaysMs } from "./books/news.js";
import { openBuiltLedger } from "./books/open-ledger.js";
import { clockOffsetsMs, countRuns, type RunCounts } from "./books/runs.js";
import { Watch } from "./books/watch.js";
import { atInterrupt } from "./clean-up.js";
import { limitsOf } from "./limits.js";
import { Traffic } from "./load/traffic.js";
import { Fleet } from "./processes/fleet.js";
import type { Scenario } from "./scenario.js";
import { RunStage } from "./stage.js";
import { openStore, type Store, type StoreKind } from "./stores/store.js";

/** All that does not balance, a line each, in the folder that is kept. */
export const FAULTS_FILE = "faults.txt";

export interface RunOptions {
  readonly scenario: Scenario;
  readonly kind: StoreKind;
  readonly jobs: number;
  readonly seed: number;
  readonly brief: boolean;
  /** How many wait at once. */
  readonly waiters: number;
  /** How many of the jobs come from the shell. */
  readonly shellJobs: number;
}

export interface Outcome {
  readonly options: RunOptions;
  readonly accepted: number;
  readonly shellJobs: number;
  /** How many ended how, by status. */
  readonly ends: ReadonlyMap<string, number>;
  readonly deeds: ReadonlyMap<string, number>;
  readonly runs: RunCounts;
  readonly submits: Traffic["submitCounts"];
  readonly waits: Traffic["waitCounts"];
  readonly newsDelaysMs: readonly number[];
  readonly looks: { readonly count: number; readonly blind: number; readonly deepest: number };
  readonly tookMs: number;
  /** Longest time between two ends, ms. */
  readonly longestPauseMs: number;
  /** What does not balance; empty when all does. */
  readonly faults: readonly string[];
  /** Where the logs are, if they were kept. */
  readonly folder: string | null;
}

export async function run(options: RunOptions): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-faults-"));
  // A database server that runs as somebody else finds its way through.
  chmodSync(folder, 0o755);
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  const closed = atInterrupt(remove);
  let keep = true;
  try {
    const outcome = await inFolder(folder, options);
    keep = outcome.faults.length > 0;
    if (keep) writeFileSync(join(folder, FAULTS_FILE), `${outcome.faults.join("\n")}\n`);
    return { ...outcome, folder: keep ? folder : null };
  } catch (error) {
    throw new Error(`${options.scenario.name} on ${options.kind} broke off; see ${folder}`, {
      cause: error,
    });
  } finally {
    closed();
    if (!keep) remove();
  }
}

async function inFolder(folder: string, options: RunOptions): Promise<Omit<Outcome, "folder">> {
  const { scenario, kind } = options;
  const { proxy = false, diskMb = null } = scenario.shape;
  const store = await openStore(kind, folder, { proxy, diskMb });
  const closed = atInterrupt(() => store.close());
  try {
    return await onStore(folder, store, options);
  } finally {
    await store.close();
    closed();
  }
}

async function onStore(
  folder: string,
  store: Store,
  options: RunOptions,
): Promise<Omit<Outcome, "folder">> {
  const { shape } = options.scenario;
  const journal = join(folder, "journal");
  writeFileSync(journal, "");
  const clockShifts = options.kind === "sqlite" ? {} : (shape.clockShifts ?? {});
  const fleet = await Fleet.of({ ...shape, folder, store: store.url, journal, clockShifts });
  const ledger = await openBuiltLedger(store.directUrl);
  try {
    return await withFleet({ folder, journal, store, fleet, ledger, options });
  } finally {
    await Promise.all(fleet.seats.map((seat) => seat.kill()));
    await ledger.close();
  }
}

interface Parts {
  readonly folder: string;
  readonly journal: string;
  readonly store: Store;
  readonly fleet: Fleet;
  readonly ledger: Ledger;
  readonly options: RunOptions;
}

async function withFleet(parts: Parts): Promise<Omit<Outcome, "folder">> {
  const { fleet, ledger, store, options, folder } = parts;
  const { scenario, jobs, seed, brief } = options;
  const random = new SeededRandom(seed);
  const watch = new Watch(ledger, scenario.shape.bound);
  const limits = limitsOf(scenario.shape, brief);
  const traffic = new Traffic({ fleet, random, shape: scenario.shape, limits, options });
  const over = (): boolean => traffic.allAccepted && watch.depth === 0;
  const stage = new RunStage({ random, fleet, store, watch, jobs, brief, over });
  watch.begin();
  const startedMs = performance.now();
  let tookMs: number;
  try {
    if (scenario.shape.startsEmpty !== true) await fleet.start();
    await Promise.all([traffic.run(), scenario.play(stage)]);
    await watch.until(over);
    tookMs = performance.now() - startedMs;
    await traffic.finish();
  } finally {
    traffic.abort();
    await watch.close();
  }
  const diagnosed = await diagnose(fleet, ledger);
  await fleet.stop();
  diagnosed.push(...(await diagnose(fleet, ledger)));
  const books = await close(parts, traffic);
  const runs = countRuns(books);
  const count = (what: string): number => stage.deeds.get(what) ?? 0;
  const offsets = clockOffsetsMs(books);
  const clockOffMs = (seat: string): number | undefined => offsets.get(seat);
  const bite = scenario.bites({ kind: options.kind, brief, ...runs, count, clockOffMs });
  return {
    options,
    accepted: books.accepted.size,
    shellJobs: options.shellJobs,
    ends: tally([...books.jobs.values()].map(({ status }) => status)),
    deeds: stage.deeds,
    runs,
    submits: traffic.submitCounts,
    waits: traffic.waitCounts,
    newsDelaysMs: newsDelaysMs(books),
    looks: { count: watch.looks, blind: watch.blind, deepest: watch.deepest },
    tookMs,
    longestPauseMs: longestPauseMs(books),
    faults: [
      ...traffic.faults,
      ...watch.faults,
      ...fleet.seats.flatMap((seat) => seat.faults),
      ...diagnosed,
      ...bugsLogged(folder),
      ...balance(books),
      ...(bite === null ? [] : [bite]),
    ],
  };
}

async function close({ journal, fleet, ledger, options }: Parts, traffic: Traffic): Promise<Books> {
  const { shape } = options.scenario;
  return {
    ...(await readLedger(ledger)),
    accepted: traffic.accepted,
    sightings: traffic.sightings,
    emptyPolls: traffic.emptyPolls,
    journal: readJournal(journal),
    idOfLife: new Map(fleet.workers.flatMap((seat) => [...seat.idOfLife])),
    slots: shape.slots,
    limits: limitsOf(shape, options.brief),
  };
}

/** Lines that only a bug writes. */
const BUG = /jobtable: bug:|uncaught fault|failed oddly|"level":60/;

function* bugsLogged(folder: string): Generator<string> {
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".log")))
    for (const line of readFileSync(join(folder, file), "utf8").split("\n"))
      if (BUG.test(line)) yield `${file}: ${line.slice(0, 300)}`;
}

function tally(words: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** The last jobs wait for their next attempt as they should: what counts is the time of the crowd. */
const CROWD = 0.98;

function longestPauseMs({ jobs }: Books): number {
  const ends = [...jobs.values()]
    .flatMap(({ finishedAtMs }) => (finishedAtMs === null ? [] : [finishedAtMs]))
    .sort((a, b) => a - b);
  let longest = 0;
  for (let index = 1; index < ends.length * CROWD; index += 1)
    longest = Math.max(longest, (ends[index] ?? 0) - (ends[index - 1] ?? 0));
  return longest;
}
