/** A ledger on PostgreSQL behind a proxy that counts what it sends. */
import type { Ledger } from "../../src/ledger/ledger.js";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { turnEnd } from "../../src/runtime/turn.js";
import { inSchemaUrl, newSchema, openAdmin } from "../ledger/postgres-factory.js";
import { PostgresProxy } from "../postgres-proxy.js";
import { settled, VirtualClock } from "../virtual-clock.js";

export class CountedPostgres {
  readonly ledger: Ledger;
  readonly clock: VirtualClock;
  readonly #proxy: PostgresProxy;
  readonly #remove: () => Promise<void>;

  private constructor(
    ledger: Ledger,
    clock: VirtualClock,
    proxy: PostgresProxy,
    remove: () => Promise<void>,
  ) {
    this.ledger = ledger;
    this.clock = clock;
    this.#proxy = proxy;
    this.#remove = remove;
  }

  /** @param server its URL. */
  static async open(server: string): Promise<CountedPostgres> {
    const proxy = await PostgresProxy.start(server);
    const schema = newSchema();
    const clock = new VirtualClock();
    const url = inSchemaUrl(proxy.url, schema);
    const ledger = await openPostgresLedger({ url, clock, logger: silentLogger });
    const counted = new CountedPostgres(ledger, clock, proxy, async () => {
      const admin = await openAdmin(server);
      await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await admin.end();
    });
    // The first probe of the listening connection goes out as it is opened.
    await counted.heard(1);
    counted.spent();
    return counted;
  }

  /** Statements since the last question, by name. Each is one round trip and one transaction, unless a BEGIN is among them. */
  spent(): Record<string, number> {
    const counts = Object.fromEntries(
      [...this.#proxy.ran].map(([statement, count]) => [nameOf(statement), count]),
    );
    this.#proxy.ran.clear();
    this.#proxy.notifications = 0;
    return counts;
  }

  /** Resolves once everything that was set off has been sent and answered. */
  async quiet(): Promise<void> {
    do {
      while (this.#proxy.underWay > 0) await turnEnd();
      await settled();
    } while (this.#proxy.underWay > 0);
  }

  /** As `quiet`, once so many notifications since the last question have come. */
  async heard(count: number): Promise<void> {
    while (this.#proxy.notifications < count) await turnEnd();
    await this.quiet();
  }

  async close(): Promise<void> {
    await this.ledger.close();
    await this.#proxy.stop();
    await this.#remove();
  }
}

/** As the ledger calls it (src/ledger/postgres/session.ts); the text of what is not prepared. */
function nameOf(statement: string): string {
  return /^jobtable_(\w+)_[0-9a-f]{16}$/.exec(statement)?.[1] ?? statement;
}
