/** plainjob at its own settings (WAL, synchronous=NORMAL), as its documentation shows it. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { given, LOGGER, type Peer, type Place } from "./peer.js";

/** What is used of plainjob. It is installed with the benchmark only, so the types stand here. */
interface Queue {
  add(type: string, data: unknown): unknown;
  addMany(type: string, data: readonly unknown[]): unknown;
  close(): void;
}
interface Plainjob {
  better(database: Database.Database): unknown;
  defineQueue(options: { connection: unknown; logger: unknown }): Queue;
  defineWorker(
    type: string,
    run: (job: { readonly data: string }) => Promise<void>,
    options: { queue: Queue; logger: unknown },
  ): { start(): Promise<void>; stop(): Promise<void> };
}

const PACKAGE = "plainjob";
/** Its numbers for jobs that wait and run. */
const UNFINISHED = "select count(*) from plainjob_jobs where status in (0, 1)";

export async function open(place: Place): Promise<Peer> {
  const plainjob = (await import(PACKAGE)) as Plainjob;
  const file = join(given(place.folder, "folder"), "plainjob.db");
  const reopen = () => {
    const database = new Database(file);
    return {
      database,
      queue: plainjob.defineQueue({ connection: plainjob.better(database), logger: LOGGER }),
    };
  };
  let { database, queue } = reopen();
  const count = (statement: string): number => Number(database.prepare(statement).pluck().get());
  return {
    submit: (received) => Promise.resolve(queue.add("noop", received)),
    submitMany(inputs) {
      queue.addMany("noop", inputs);
      return Promise.resolve([]);
    },
    async work(onRun) {
      const worker = plainjob.defineWorker(
        "noop",
        ({ data }) => {
          onRun((JSON.parse(data) as { n: number }).n);
          return Promise.resolve();
        },
        { queue, logger: LOGGER },
      );
      void worker.start();
      return () => worker.stop();
    },
    unfinished: async () => count(UNFINISHED),
    recorded: async () => count("select count(*) from plainjob_jobs"),
    async wipe() {
      queue.close();
      for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
      ({ database, queue } = reopen());
    },
    async close() {
      queue.close();
    },
  };
}
