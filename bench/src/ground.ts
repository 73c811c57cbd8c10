/** What benchmarks share: the servers, started when first asked for, folders and processes, all of which go when a benchmark or the run ends. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startActor, type Actor, type PeerName } from "./acting.js";
import type { Effort } from "./effort.js";
import type { Place } from "./peers/peer.js";
import { startPostgres, type Postgres } from "./servers/postgres.js";
import { startRedis, type Redis, type RedisKind } from "./servers/redis.js";

export interface Stoppable {
  stop(): Promise<void>;
}

export class Ground {
  readonly effort: Effort;
  readonly #ofBenchmark: Stoppable[] = [];
  readonly #ofRun: Stoppable[] = [];
  #postgres: Promise<Postgres> | null = null;
  #closing: Promise<void> | null = null;
  readonly #redis = new Map<RedisKind, Promise<Redis>>();

  constructor(effort: Effort) {
    this.effort = effort;
  }

  /** Of the server of this run; null when none was asked for. */
  postgresVersion: string | null = null;

  /** @throws Missing */
  postgres(): Promise<Postgres> {
    this.#postgres ??= startPostgres().then((server) => {
      this.postgresVersion = server.version;
      return this.#forRun(server);
    });
    return this.#postgres;
  }

  /** @throws Missing */
  redis(kind: RedisKind): Promise<Redis> {
    let server = this.#redis.get(kind);
    if (server === undefined) {
      server = startRedis(kind).then((started) => this.#forRun(started));
      this.#redis.set(kind, server);
    }
    return server;
  }

  /** A place of its own on SQLite. */
  sqlite(): Place {
    const folder = mkdtempSync(join(tmpdir(), "jobtable-bench-"));
    this.keep({ stop: async () => rmSync(folder, { recursive: true, force: true }) });
    return { folder };
  }

  /** A place of its own on PostgreSQL. @throws Missing */
  async database(): Promise<{ readonly url: string }> {
    return { url: await (await this.postgres()).fresh() };
  }

  async actor(peer: PeerName, place: Place): Promise<Actor> {
    return this.keep(await startActor(peer, place));
  }

  /** Stopped at the end of the benchmark, the youngest first. */
  keep<Thing extends Stoppable>(thing: Thing): Thing {
    this.#ofBenchmark.push(thing);
    return thing;
  }

  endBenchmark(): Promise<void> {
    return stopAll(this.#ofBenchmark);
  }

  /** Idempotent. What is being started meanwhile is waited for and stopped too. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.allSettled([this.#postgres, ...this.#redis.values()]);
    await this.endBenchmark();
    await stopAll(this.#ofRun);
  }

  #forRun<Thing extends Stoppable>(thing: Thing): Thing {
    this.#ofRun.push(thing);
    return thing;
  }
}

async function stopAll(things: Stoppable[]): Promise<void> {
  for (let thing = things.pop(); thing !== undefined; thing = things.pop()) await thing.stop();
}
