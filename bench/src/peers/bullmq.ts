/** BullMQ on Redis: one worker with 100 jobs at a time. Ended jobs are kept, as is its default. */
import { given, type Input, type Peer, type Place } from "./peer.js";

/** What is used of BullMQ. It is installed with the benchmark only, so the types stand here. */
interface Queue {
  on(event: "error", listener: (error: Error) => void): void;
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: unknown): Promise<{ id?: string }>;
  addBulk(jobs: readonly { name: string; data: unknown }[]): Promise<unknown>;
  getJobCounts(...types: string[]): Promise<Record<string, number>>;
  obliterate(options: { force: boolean }): Promise<void>;
  close(): Promise<void>;
}
interface Worker {
  on(event: "error", listener: (error: Error) => void): void;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}
interface BullMq {
  Queue: new (name: string, options: object) => Queue;
  Worker: new (
    name: string,
    run: (job: { readonly data: Input }) => Promise<void>,
    options: object,
  ) => Worker;
}

const PACKAGE = "bullmq";
const QUEUE = "noop";
const UNFINISHED = ["waiting", "active", "delayed", "prioritized"];

export async function open(place: Place): Promise<Peer> {
  const bullmq = (await import(PACKAGE)) as BullMq;
  const connection = { host: "127.0.0.1", port: given(place.redisPort, "redisPort") };
  const queue = new bullmq.Queue(QUEUE, { connection });
  queue.on("error", console.error);
  await queue.waitUntilReady();
  const count = async (types: readonly string[]): Promise<number> =>
    Object.values(await queue.getJobCounts(...types)).reduce((sum, value) => sum + value, 0);
  return {
    submit: (received) => queue.add("noop", received),
    async submitMany(inputs) {
      await queue.addBulk(inputs.map((data) => ({ name: "noop", data })));
      return [];
    },
    async work(onRun) {
      const worker = new bullmq.Worker(
        QUEUE,
        async ({ data }) => {
          onRun(data.n);
        },
        { connection, concurrency: 100 },
      );
      worker.on("error", console.error);
      await worker.waitUntilReady();
      return () => worker.close();
    },
    unfinished: () => count(UNFINISHED),
    recorded: () => count([...UNFINISHED, "completed", "failed"]),
    wipe: () => queue.obliterate({ force: true }),
    close: () => queue.close(),
  };
}
