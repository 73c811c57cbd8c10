/**
 * The connection to the database file, and the one way in which work reaches it: groups of operations
 * that become one transaction with one commit.
 *
 * A write transaction takes the write lock as it begins; none begins as a reader and writes later,
 * which is what makes "database is locked" possible in spite of waiting. A fault of the store fails
 * the whole group and leaves nothing of it; a fault of one call makes the group run again call by
 * call, so that only that call fails; should the store fail then, the calls that are left fail with
 * it, since each would only wait for it anew. After a failed commit the transaction is rolled back: what was
 * not answered is not recorded, unless the power goes at that moment, when the file may hold it.
 * A connection that met an I/O error or damage is replaced before the next group.
 */
import type { Database } from "better-sqlite3";
import { statSync } from "node:fs";
import { LedgerError } from "../../job/errors.js";
import type { Clock } from "../../runtime/clock.js";
import {
  BUSY_TIMEOUT_MS,
  connect,
  openDatabase,
  type ConnectOptions,
  type Connection,
} from "./connection.js";
import { execute, weigh, type Weight } from "./execute.js";
import { explain, type Fault } from "./failures.js";
import type { Batch, Operation, Outcome } from "./protocol.js";
import { RecentEnds } from "./recent-ends.js";
import { integer } from "./rows.js";
import type { Statements } from "./statements.js";
import { Transaction } from "./transaction.js";

interface Item {
  readonly operation: Operation;
  readonly nowMs: number;
}

export type StoreOptions = Pick<ConnectOptions, "path" | "nowMs" | "clock"> &
  Partial<ConnectOptions>;

export class Store {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #opening: Omit<ConnectOptions, "nowMs">;
  #connection: Connection | undefined;
  /** Which file it is that was opened, whatever stands at the path by now. */
  readonly #file: string;
  #synchronous: "FULL" | "NORMAL" = "FULL";
  readonly #recentEnds = new RecentEnds();
  #lookMs = 0;

  /** @throws whatever opening throws; `explain` says what it means. */
  constructor({
    path,
    nowMs,
    clock,
    open = openDatabase,
    busyTimeoutMs = BUSY_TIMEOUT_MS,
    create = true,
  }: StoreOptions) {
    this.#path = path;
    this.#clock = clock;
    this.#opening = { path, clock, open, busyTimeoutMs, create };
    this.#connection = connect({ ...this.#opening, nowMs });
    this.#file = fileAt(path);
  }

  /** How long the looks of the last run took by themselves, whatever else was in it. */
  get lookMs(): number {
    return this.#lookMs;
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
    this.#lookMs = 0;
    const outcomes = this.#runGroup(items);
    let at = 0;
    return batches.map(({ operations }) => outcomes.slice(at, (at += operations.length)));
  }

  close(): void {
    const db = this.#connection?.db;
    this.#connection = undefined;
    if (db === undefined) return;
    try {
      // It holds the write lock while it waits for readers: nobody else may have to wait for that.
      db.pragma("busy_timeout = 0");
      db.pragma("wal_checkpoint(TRUNCATE)");
    } catch {
      // The log stays as long as it is; whoever opens next reads it.
    }
    db.close();
  }

  #runGroup(items: readonly Item[]): Outcome[] {
    const done = this.#attempt(items);
    if (!("failure" in done)) return done;
    if (done.ofStore || items.length === 1) return items.map(() => done.failure);
    return this.#runOneByOne(items);
  }

  #runOneByOne(items: readonly Item[]): Outcome[] {
    const outcomes: Outcome[] = [];
    for (const item of items) {
      const done = this.#attempt([item]);
      if (!("failure" in done)) outcomes.push(...done);
      else if (done.ofStore)
        return [...outcomes, ...items.slice(outcomes.length).map(() => done.failure)];
      else outcomes.push(done.failure);
    }
    return outcomes;
  }

  #attempt(items: readonly Item[]): Outcome[] | Fault {
    let connection: Connection;
    try {
      connection = this.#connected(items[0]?.nowMs ?? 0);
    } catch (error) {
      return { ...explain(error, this.#path), ofStore: true };
    }
    try {
      return this.#transact(connection, items);
    } catch (error) {
      return this.#recover(error);
    }
  }

  #transact({ db, run }: Connection, items: readonly Item[]): Outcome[] {
    const weight = heaviest(items, run);
    if (weight !== "look") this.#setSynchronous(db, weight === "record" ? "FULL" : "NORMAL");
    (weight === "look" ? run.begin : run.beginWrite).run();
    const tx = new Transaction(run, this.#recentEnds);
    const outcomes = items.map(({ operation, nowMs }): Outcome => {
      tx.nowMs = nowMs;
      if (operation.verb !== "look" && operation.verb !== "recent")
        return { failed: false, answer: execute(tx, operation, weight) };
      const lookedMs = this.#clock.monotonicMs();
      const answer = execute(tx, operation, weight);
      this.#lookMs += this.#clock.monotonicMs() - lookedMs;
      return { failed: false, answer };
    });
    tx.finish();
    run.commit.run();
    return outcomes;
  }

  /**
   * What is written to a file that was removed is gone with the process, and a new file in its place
   * is another ledger: nothing may be acknowledged from either.
   */
  #connected(nowMs: number): Connection {
    if (fileAt(this.#path) !== this.#file)
      throw new LedgerError(
        "ledger_unavailable",
        `the ledger ${this.#path} was removed or replaced while in use: put its file back, or restart with the new one`,
      );
    if (this.#connection === undefined) {
      this.#connection = connect({ ...this.#opening, nowMs });
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
    this.#recentEnds.forget();
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

/** Names the file at a path; a path without one has an empty name. */
function fileAt(path: string): string {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found === undefined ? "" : `${String(found.dev)} ${String(found.ino)}`;
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
