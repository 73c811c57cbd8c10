/** Fills the product's table with jobs that have ended, in one statement, as if they had run one each millisecond until now. */
import { join } from "node:path";
import Database from "better-sqlite3";
import type { Postgres } from "./servers/postgres.js";

const PAYLOAD =
  '{"schema_version":1,"task":"noop","input":{"n":1,"email":"user1@example.com","template":"welcome"}}';
const COLUMNS =
  "job_id, task, queue, status, priority, run_at, attempt, max_attempts, created_at, started_at, finished_at, last_heartbeat, worker_id, schema_version, payload_json, result_json";

/** @param url of a database in which the product's tables are. */
export async function seedPostgres(postgres: Postgres, url: string, rows: number): Promise<void> {
  await postgres.query(
    url,
    `with filled as (
      insert into jobtable.async_jobs (${COLUMNS})
      select lpad(i::text, 26, '0'), 'noop', 'default', 'succeeded', 0, t, 1, 1, t, t, t, t,
        'worker-00000000', 1, '${PAYLOAD}', '{"ok":true}'
      from (
        select i, date_trunc('milliseconds', now()) - (${String(rows)} - i) * interval '1 ms' as t
        from generate_series(1, ${String(rows)}) as i
      ) as times
    )
    update jobtable.async_counts set terminal = terminal + ${String(rows)}`,
  );
  await postgres.query(url, "vacuum (analyze) jobtable.async_jobs");
  await postgres.query(url, "checkpoint");
}

/** @param folder of a place in which the product's file is. */
export function seedSqlite(folder: string, rows: number): void {
  const database = new Database(join(folder, "jobs.db"));
  database.pragma("synchronous = OFF");
  database.exec(`begin;
    with recursive numbers(i) as (select 1 union all select i + 1 from numbers where i < ${String(rows)}),
    times(i, t) as (
      select i, strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-' || ((${String(rows)} - i) / 1000.0) || ' seconds')
      from numbers
    )
    insert into async_jobs (${COLUMNS})
    select printf('%026d', i), 'noop', 'default', 'succeeded', 0, t, 1, 1, t, t, t, t,
      'worker-00000000', 1, '${PAYLOAD}', '{"ok":true}'
    from times;
    update async_counts set terminal = terminal + ${String(rows)};
    commit;`);
  database.pragma("wal_checkpoint(TRUNCATE)");
  database.close();
}
