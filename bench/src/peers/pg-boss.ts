/** pg-boss 12 (Node 22 and newer): ten connections, batches of 1000 by two workers that go on while batches are full, LISTEN/NOTIFY on. */
import pg from "pg";
import { given, type Input, type Peer, type Place } from "./peer.js";

/** What is used of pg-boss. It is installed with the benchmark only, so the types stand here. */
interface Boss {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { graceful: boolean }): Promise<void>;
  createQueue(name: string, options: { notify: boolean }): Promise<void>;
  send(name: string, data: unknown): Promise<string | null>;
  insert(name: string, jobs: readonly { data: unknown }[]): Promise<unknown>;
  work(
    name: string,
    options: object,
    run: (jobs: readonly { data: Input }[]) => Promise<void>,
  ): Promise<string>;
  offWork(name: string): Promise<void>;
  deleteAllJobs(name: string): Promise<void>;
}
interface PgBossPackage {
  PgBoss: new (options: object) => Boss;
}

const PACKAGE = "pg-boss";
const QUEUE = "noop";
const CONNECTIONS = 10;
const WORK = {
  batchSize: 1_000,
  localConcurrency: 2,
  burstWhenBatchFull: true,
  pollingIntervalSeconds: 0.5,
};

export async function open(place: Place): Promise<Peer> {
  const { PgBoss } = (await import(PACKAGE)) as PgBossPackage;
  const url = given(place.url, "url");
  const boss = new PgBoss({ connectionString: url, max: CONNECTIONS, useListenNotify: true });
  boss.on("error", console.error);
  await boss.start();
  await boss.createQueue(QUEUE, { notify: true });
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const count = async (where: string): Promise<number> => {
    const text = `select count(*) as count from pgboss.job where name = $1 and ${where}`;
    const { rows } = await pool.query<{ count: string }>(text, [QUEUE]);
    return Number(rows[0]?.count);
  };
  return {
    submit: (received) => boss.send(QUEUE, received),
    async submitMany(inputs) {
      await boss.insert(
        QUEUE,
        inputs.map((data) => ({ data })),
      );
      return [];
    },
    async work(onRun) {
      await boss.work(QUEUE, WORK, async (jobs) => {
        for (const { data } of jobs) onRun(data.n);
      });
      return () => boss.offWork(QUEUE);
    },
    unfinished: () => count("state <> 'completed'"),
    recorded: () => count("true"),
    async wipe() {
      await boss.deleteAllJobs(QUEUE);
      await pool.query("vacuum analyze pgboss.job");
    },
    async close() {
      await boss.stop({ graceful: false });
      await pool.end();
    },
  };
}
