/** A store that a scenario runs on, with what can be done to it. */
import { join } from "node:path";
import { PostgresProxy } from "../../postgres-proxy.js";
import { startPostgres, type PostgresServer } from "../../postgres-server.js";
import { SmallDisk } from "./small-disk.js";

export const STORE_KINDS = ["sqlite", "postgres"] as const;
export type StoreKind = (typeof STORE_KINDS)[number];

export interface Store {
  readonly kind: StoreKind;
  /** For the processes. */
  readonly url: string;
  /** For the books, past whatever stands between. */
  readonly directUrl: string;
  readonly server: PostgresServer | null;
  /** Between the processes and the server. */
  readonly proxy: PostgresProxy | null;
  /** What the store lies on, where that is a disk of its own. */
  readonly disk: SmallDisk | null;
  close(): Promise<void>;
}

export interface StoreNeeds {
  readonly proxy: boolean;
  /** The size of a disk of its own, or null. */
  readonly diskMb: number | null;
}

export async function openStore(
  kind: StoreKind,
  folder: string,
  { proxy: wantsProxy, diskMb }: StoreNeeds,
): Promise<Store> {
  const disk = diskMb === null ? null : SmallDisk.mount(join(folder, "disk"), diskMb);
  try {
    return kind === "sqlite"
      ? onSqlite(disk?.path ?? folder, disk)
      : await onPostgres(disk, wantsProxy);
  } catch (error) {
    disk?.unmount();
    throw error;
  }
}

function onSqlite(folder: string, disk: SmallDisk | null): Store {
  const url = `sqlite:${join(folder, "jobs.db")}`;
  const close = async (): Promise<void> => disk?.unmount();
  return { kind: "sqlite", url, directUrl: url, server: null, proxy: null, disk, close };
}

async function onPostgres(disk: SmallDisk | null, wantsProxy: boolean): Promise<Store> {
  const server = await startPostgres(
    // On a small disk the server's own log must not be what fills it.
    disk === null ? {} : { folder: disk.path, settings: ["max_wal_size=64MB"] },
  );
  const directUrl = `${server.url}?schema=faults`;
  const proxy = wantsProxy ? await PostgresProxy.start(directUrl) : null;
  return {
    kind: "postgres",
    url: proxy?.url ?? directUrl,
    directUrl,
    server,
    proxy,
    disk,
    async close() {
      await proxy?.stop();
      await server.stop();
      disk?.unmount();
    },
  };
}
