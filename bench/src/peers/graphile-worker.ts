/** graphile-worker 0.18 (Node 22 and newer): 24 jobs at a time, a local queue of 1000, ends in batches. It deletes what is done. */
import pg from "pg";
import { given, type Input, type Peer, type Place } from "./peer.js";

/** What is used of graphile-worker. It is installed with the benchmark only, so the types stand here. */
interface Utils {
  migrate(): Promise<void>;
  addJob(identifier: string, payload: unknown): Promise<unknown>;
  addJobs(specs: readonly { identifier: string; payload: unknown }[]): Promise<unknown>;
  release(): Promise<void>;
}
interface Graphile {
  Logger: new (factory: () => () => void) => object;
  makeWorkerUtils(options: object): Promise<Utils>;
  run(options: object): Promise<{ stop(): Promise<void> }>;
}

const PACKAGE = "graphile-worker";
const JOBS = "graphile_worker._private_jobs";
const BEST = {
  concurrentJobs: 24,
  maxPoolSize: 26,
  localQueue: { size: 1_000 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  getQueueNameBatchDelay: 50,
  useNodeTime: true,
  pollInterval: 2_000,
};

export async function open(place: Place): Promise<Peer> {
  const graphile = (await import(PACKAGE)) as Graphile;
  const logger = new graphile.Logger(() => () => undefined);
  const connectionString = given(place.url, "url");
  const pool = new pg.Pool({ connectionString, max: 10 });
  pool.on("error", console.error);
  pool.on("connect", (client) => client.on("error", console.error));
  const utils = await graphile.makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  const count = async (): Promise<number> => {
    const { rows } = await pool.query<{ count: string }>(`select count(*) as count from ${JOBS}`);
    return Number(rows[0]?.count);
  };
  return {
    submit: (received) => utils.addJob("noop", received),
    async submitMany(inputs) {
      await utils.addJobs(inputs.map((payload) => ({ identifier: "noop", payload })));
      return [];
    },
    async work(onRun) {
      const runner = await graphile.run({
        preset: { worker: { connectionString, logger, ...(place.plain === true ? {} : BEST) } },
        taskList: {
          noop: async (received: Input) => {
            onRun(received.n);
          },
        },
        noHandleSignals: true,
        crontab: "",
      });
      return () => runner.stop();
    },
    unfinished: count,
    recorded: count,
    async wipe() {
      await pool.query(`delete from ${JOBS}`);
      await pool.query(`vacuum analyze ${JOBS}`);
    },
    async close() {
      await utils.release();
      await pool.end();
    },
  };
}
