// A process of its own for sqlite-processes.test.ts: node sqlite-child.mjs DIST ROLE PATH [ARG].
// It says what it did, one line each, and ends by itself or by the test's signal.
import { writeSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, role, path, argument] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(dist, file)).href);
const { openSqliteLedger } = await load("ledger/sqlite/sqlite-ledger.js");
const { systemClock } = await load("runtime/clock.js");
const { silentLogger } = await load("runtime/logger.js");
const { idSource, systemRandom } = await load("runtime/random.js");

const nextId = idSource(systemClock, systemRandom());
const say = (line) => writeSync(1, `${line}\n`);
const ledger = await openSqliteLedger({ path, clock: systemClock, logger: silentLogger });
const newJob = (task) => ({ jobId: nextId(), task, schemaVersion: 1, payloadJson: '{"a":1}' });
const bound = { maxDepth: 1_000_000 };

const roles = {
  /** Submits, and reports each job that was answered, until it is killed. */
  async submit() {
    const lane = async () => {
      for (;;) {
        const job = newJob("noop");
        await ledger.submit([job], bound);
        say(job.jobId);
      }
    };
    await Promise.all(Array.from({ length: 8 }, lane));
  },
  /**
   * Lives the life of jobs, ten at a time, claiming whatever there is, for `argument` ms and 20 rounds at
   * least; reports how many it submitted and how many ends it recorded.
   */
  async live() {
    const workerId = `worker-${String(process.pid).padStart(8, "0")}`;
    const untilMs = performance.now() + Number(argument);
    let submitted = 0;
    let ends = 0;
    for (let round = 0; round < 20 || performance.now() < untilMs; round += 1) {
      await Promise.all(Array.from({ length: 10 }, () => ledger.submit([newJob("noop")], bound)));
      submitted += 10;
      const claimed = await ledger.claim({ workerId, tasks: ["noop"], limit: 10 });
      await ledger.heartbeat(
        beat(workerId),
        claimed.map(({ job }) => job),
      );
      const happened = await ledger.settle(
        claimed.map(({ job }) => ({
          jobId: job.jobId,
          workerId,
          attempt: job.attempt,
          end: { event: "succeed", resultJson: "1" },
        })),
      );
      ends += happened.filter(Boolean).length;
    }
    say(`${submitted} ${ends}`);
    await ledger.close();
  },
  /** Cancels the job named. */
  async cancel() {
    const [outcome] = await ledger.cancel([argument]);
    say(outcome.kind);
    await ledger.close();
  },
};

function beat(workerId) {
  return {
    workerId,
    host: "here",
    pid: process.pid,
    pidStamp: "",
    state: "running",
    tasks: ["noop"],
    maxWorkers: 10,
    processed: 0,
    failed: 0,
    cancelled: 0,
  };
}

await roles[role]();
