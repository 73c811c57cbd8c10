/**
 * The ledger in a schema of a PostgreSQL database (14 or later; no rights but those on the schema, no
 * extension), shared by any number of machines. Each verb is one statement and so one transaction
 * (statements.ts): what they have answered is on disk, but for beats, which may be lost with the server
 * and leave the job as it was before.
 *
 * Changes are told with NOTIFY on one channel per schema, in the transaction that makes them; this
 * process's own go to its listeners as the answer arrives, and so before any caller learns of it.
 * Where NOTIFY does not come through, watched jobs are looked at each second (listener.ts).
 *
 * Faults are `LedgerError`s (failures.ts): while the server is away, verbs reject, and work again by
 * themselves when it is back. A call whose arguments are at fault rejects alone, with an `Error`.
 */
import { LedgerError } from "../../job/errors.js";
import type { Job, NewJob } from "../../job/job.js";
import type { Status } from "../../job/state.js";
import type { Clock } from "../../runtime/clock.js";
import type { Logger } from "../../runtime/logger.js";
import type {
  AdmissionBound,
  CancelOutcome,
  ClaimedJob,
  ClaimRequest,
  Counts,
  EvictLimit,
  HeartbeatAnswer,
  InspectLimit,
  JobBeat,
  JobPage,
  JobResult,
  Ledger,
  LedgerReport,
  ListQuery,
  RejectLimit,
  RescuedJob,
  RescueLimit,
  Settlement,
  SubmitOutcome,
  Unsubscribe,
  WorkerBeat,
  WorkerRecord,
} from "../ledger.js";
import type { PlanRecords } from "../plan-records.js";
import type { Within } from "../within.js";
import { parseAddress, type Address } from "./address.js";
import { cancel } from "./cancelling.js";
import { Changes, newOrigin, type Means } from "./changes.js";
import { claim, heartbeat } from "./claiming.js";
import { Connections } from "./connections.js";
import { counts, get, inspect, list, payload, result } from "./looking.js";
import { missingLedger, refuseOlder } from "../sql/migrations.js";
import { applied, ledgerAt, migrate, migrations } from "./migrate.js";
import { PostgresPlans } from "./postgres-plans.js";
import { toWorker } from "./rows.js";
import { session } from "./session.js";
import { settle } from "./settling.js";
import { submit } from "./submitting.js";
import { evict, expire, reject, rescue } from "./sweeping.js";
import { within } from "./within.js";

/** What is under way at close has this long to be answered; a server that is silent must not hold up a shutdown. */
const CLOSE_LIMIT_MS = 5_000;

export interface PostgresLedgerOptions {
  /** postgres://USER@HOST/DATABASE?schema=NAME; what libpq takes besides is passed on. */
  readonly url: string;
  /** False: it must be there, and up to date. Default: true. */
  readonly create?: boolean;
  /** For pauses and limits; the time of a record is the server's. */
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Makes the schema, or brings it up to date, where that is due.
 * @throws JobtableError `invalid_config` for a URL that can't be or a database that is not in UTF8; a LedgerError when the server can't
 * be reached, refuses the login, or has the schema of a newer version.
 */
export async function openPostgresLedger(
  options: PostgresLedgerOptions,
): Promise<Ledger & { readonly within: Within }> {
  const address = parseAddress(options.url);
  const { clock, logger, create = true } = options;
  const connections = await Connections.open(address, logger, async (client, connect) => {
    if (create) {
      await migrate(client, address, migrations(), { clock, connect });
      return;
    }
    const seen = await applied(client, address);
    if (seen === null)
      throw missingLedger(`ledger in schema ${address.schema} of ${address.label}`);
    refuseOlder(migrations(), seen, ledgerAt(address));
  });
  const ledger = new PostgresLedger(connections, address, options);
  await ledger.listen();
  return ledger;
}

class PostgresLedger implements Ledger {
  readonly kind = "postgres";
  readonly plans: PlanRecords;
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #means: Means;
  readonly within: Within;
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;
  #closing: Promise<void> | null = null;

  constructor(connections: Connections, address: Address, options: PostgresLedgerOptions) {
    this.#connections = connections;
    this.#clock = options.clock;
    const run = session(connections, address.schema);
    const changes = new Changes({
      ...options,
      origin: newOrigin(),
      channel: address.channel,
      connect: () => connections.connect(),
      run,
    });
    this.#means = { run, changes };
    this.plans = new PostgresPlans((body) => this.#verb(body), run);
    this.within = within(address, changes, (body) => this.#verb(body));
  }

  listen(): Promise<void> {
    return this.#means.changes.listen();
  }

  submit(jobs: readonly NewJob[], bound: AdmissionBound): Promise<SubmitOutcome[]> {
    return this.#verb(() => submit(this.#means, jobs, bound));
  }

  claim(request: ClaimRequest): Promise<ClaimedJob[]> {
    return this.#verb(() => claim(this.#means, request));
  }

  settle(settlements: readonly Settlement[]): Promise<(Status | null)[]> {
    return this.#verb(() => settle(this.#means, settlements));
  }

  heartbeat(worker: WorkerBeat, jobs: readonly JobBeat[]): Promise<HeartbeatAnswer> {
    return this.#verb(() => heartbeat(this.#means.run, worker, jobs));
  }

  leave(workerId: string): Promise<void> {
    return this.#verb(async () => {
      await this.#means.run("leave", [workerId]);
    });
  }

  cancel(jobIds: readonly string[]): Promise<CancelOutcome[]> {
    return this.#verb(() => cancel(this.#means, jobIds));
  }

  get(jobIds: readonly string[]): Promise<(Job | null)[]> {
    return this.#verb(() => get(this.#means.run, jobIds));
  }

  result(jobId: string): Promise<JobResult | null> {
    return this.#verb(() => result(this.#means.run, jobId));
  }

  payload(jobId: string): Promise<string | null> {
    return this.#verb(() => payload(this.#means.run, jobId));
  }

  list(query: ListQuery): Promise<JobPage> {
    return this.#verb(() => list(this.#means.run, query));
  }

  counts(): Promise<Counts> {
    return this.#verb(() => counts(this.#means.run));
  }

  workers(): Promise<WorkerRecord[]> {
    return this.#verb(async () => (await this.#means.run("workers", [])).map(toWorker));
  }

  inspect(limit: InspectLimit): Promise<LedgerReport> {
    return this.#verb(() => inspect(this.#means.run, limit));
  }

  expire(limit: { readonly waitLimitMs: number; readonly chunk: number }): Promise<number> {
    return this.#verb(() => expire(this.#means, limit));
  }

  reject(limit: RejectLimit): Promise<number> {
    return this.#verb(() => reject(this.#means, limit));
  }

  rescue(limit: RescueLimit): Promise<RescuedJob[]> {
    return this.#verb(() => rescue(this.#means, limit));
  }

  evict(limit: EvictLimit): Promise<number> {
    return this.#verb(() => evict(this.#means, limit));
  }

  watch(jobId: string, onChange: () => void): Unsubscribe {
    return this.#closed ? () => undefined : this.#means.changes.watch(jobId, onChange);
  }

  onWork(onWork: () => void): Unsubscribe {
    return this.#closed ? () => undefined : this.#means.changes.onWork(onWork);
  }

  close(): Promise<void> {
    this.#closed = true;
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const cancelLimit = this.#clock.timer(CLOSE_LIMIT_MS, () => {
      this.#connections.cut();
    });
    try {
      await Promise.allSettled(this.#underWay);
      await this.#means.changes.close();
      await this.#connections.close();
    } finally {
      cancelLimit();
    }
  }

  async #verb<T>(body: () => Promise<T>): Promise<T> {
    if (this.#closed)
      throw new LedgerError("ledger_closed", "the PostgreSQL ledger is closed: open a new one");
    const { changes } = this.#means;
    const call = body();
    this.#underWay.add(call);
    try {
      const answer = await call;
      changes.answered();
      return answer;
    } catch (error) {
      if (error instanceof LedgerError) changes.unanswered();
      throw error;
    } finally {
      this.#underWay.delete(call);
    }
  }
}
