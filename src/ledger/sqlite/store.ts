/**
 * The connection to the database file, and the one way in which work reaches it: groups of operations
 * that become one transaction with one commit.
 *
 * A write transaction takes the write lock as it begins; none begins as a reader and writes later,
 * which is what makes "database is locked" possible in spite of waiting. A fault of the store fails
 * the whole group and leaves nothing of it; a fault of one call makes the group run again call by
 * call, so that only that call fails. After a failed commit the transaction is rolled back: what was
 * not answered is not recorded, unless the power goes at that moment, when the file may hold it.
 * A connection that met an I/O error or damage is replaced before the next group.
 */
import type { Database } from "better-sqlite3";
import type { Clock } from "../../runtime/clock.js";
import { connect, openDatabase, type Connection, type OpenDatabase } from "./connection.js";
import { execute, weigh, type Weight } from "./execute.js";
import { explain, type Fault } from "./failures.js";
import type { Batch, Operation, Outcome } from "./protocol.js";
import { integer } from "./rows.js";
import type { Statements } from "./statements.js";
import { Transaction } from "./transaction.js";

interface Item {
  readonly operation: Operation;
  readonly nowMs: number;
}

export interface StoreOptions {
  readonly path: string;
  /** The ledger's time, for what opening records. */
  readonly nowMs: number;
  readonly clock: Clock;
  readonly open?: OpenDatabase;
}

/** Of each new commit in the running mean of their times: a dozen tell a slow disk from a slow moment. */
const SHARE_OF_LAST_COMMIT = 1 / 8;

export class Store {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #open: OpenDatabase;
  #connection: Connection | undefined;
  #synchronous: "FULL" | "NORMAL" = "FULL";

  #commitMs = 0;

  /** @throws whatever opening throws; `explain` says what it means. */
  constructor({ path, nowMs, clock, open = openDatabase }: StoreOptions) {
    this.#path = path;
    this.#clock = clock;
    this.#open = open;
    this.#connection = connect(path, nowMs, open);
  }

  /** How long the disk takes for a commit, a running mean over those that wait for it. */
  get commitMs(): number {
    return this.#commitMs;
  }

  /** Changes whenever another connection has changed the database. Null: could not be read. */
  dataVersion(): number | null {
    try {
      return integer(this.#connection?.run.dataVersion.get()?.[0] ?? null);
    } catch {
      return null;
    }
  }

  /** How many jobs wait; zero when that can't be read. */
  queued(): number {
    try {
      return integer(this.#connection?.run.counts.get()?.[0] ?? null);
    } catch {
      return 0;
    }
  }

  /** One transaction for all; the outcomes of each batch, in order. */
  run(batches: readonly Batch[]): Outcome[][] {
    const items = batches.flatMap(({ operations, nowMs }) =>
      operations.map((operation) => ({ operation, nowMs })),
    );
    const outcomes = this.#runGroup(items);
    let at = 0;
    return batches.map(({ operations }) => outcomes.slice(at, (at += operations.length)));
  }

  close(): void {
    const db = this.#connection?.db;
    this.#connection = undefined;
    if (db === undefined) return;
    try {
      db.pragma("wal_checkpoint(TRUNCATE)");
    } catch {
      // The log stays as long as it is; whoever opens next reads it.
    }
    db.close();
  }

  #runGroup(items: readonly Item[]): Outcome[] {
    try {
      return this.#transact(items);
    } catch (error) {
      const fault = this.#recover(error);
      if (fault.ofStore || items.length === 1) return items.map(() => fault.failure);
      return items.flatMap((item) => this.#runGroup([item]));
    }
  }

  #transact(items: readonly Item[]): Outcome[] {
    const { db, run } = this.#connected(items[0]?.nowMs ?? 0);
    const weight = heaviest(items, run);
    if (weight !== "look") this.#setSynchronous(db, weight === "record" ? "FULL" : "NORMAL");
    (weight === "look" ? run.begin : run.beginWrite).run();
    const tx = new Transaction(run);
    const outcomes = items.map(({ operation, nowMs }): Outcome => {
      tx.nowMs = nowMs;
      return { failed: false, answer: execute(tx, operation, weight) };
    });
    tx.finish();
    const startedMs = this.#clock.monotonicMs();
    run.commit.run();
    if (weight === "record")
      this.#commitMs +=
        (this.#clock.monotonicMs() - startedMs - this.#commitMs) * SHARE_OF_LAST_COMMIT;
    return outcomes;
  }

  #connected(nowMs: number): Connection {
    if (this.#connection === undefined) {
      this.#connection = connect(this.#path, nowMs, this.#open);
      this.#synchronous = "FULL";
    }
    return this.#connection;
  }

  #setSynchronous(db: Database, level: "FULL" | "NORMAL"): void {
    if (this.#synchronous === level) return;
    db.pragma(`synchronous = ${level}`);
    this.#synchronous = level;
  }

  /** Leaves no transaction open, and no connection that can't be trusted. */
  #recover(error: unknown): Fault {
    const fault = explain(error, this.#path);
    const db = this.#connection?.db;
    if (db === undefined) return fault;
    let usable = !fault.reopen;
    try {
      if (db.inTransaction) db.exec("ROLLBACK");
    } catch {
      usable = false;
    }
    if (!usable) {
      this.#connection = undefined;
      db.close();
    }
    return fault;
  }
}

function heaviest(items: readonly Item[], run: Statements): Weight {
  let heaviestSoFar: Weight = "look";
  for (const { operation, nowMs } of items) {
    // A group that writes anyway need not know whether its claims would find something.
    if (heaviestSoFar === "note" && operation.verb === "claim") continue;
    const weight = weigh(operation, run, nowMs);
    if (weight === "record") return weight;
    if (weight === "note") heaviestSoFar = weight;
  }
  return heaviestSoFar;
}
