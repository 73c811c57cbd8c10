/** The same submits, claims and ends in a table that holds a great many ended jobs, and in an empty one: P9. */
import type { Actor } from "../acting.js";
import type { Ground } from "../ground.js";
import type { Place } from "../peers/peer.js";
import { inTurn, versus, type Row } from "../row.js";
import { seedPostgres, seedSqlite } from "../terminal-rows.js";

interface Times {
  /** Microseconds per job. */
  readonly submit: number;
  readonly drain: number;
}

export async function tableSize(ground: Ground): Promise<Row[]> {
  return [...(await onStore(ground, "PostgreSQL")), ...(await onStore(ground, "SQLite FULL"))];
}

async function onStore(ground: Ground, store: "PostgreSQL" | "SQLite FULL"): Promise<Row[]> {
  const { terminalRows, drainJobs, rounds } = ground.effort;
  const empty = await opened(ground, store, 0);
  const full = await opened(ground, store, terminalRows);
  const [mine = [], theirs = []] = await inTurn(rounds, [
    () => times(full, drainJobs),
    async () => {
      await empty.call("wipe");
      return await times(empty, drainJobs);
    },
  ]);
  return (["submit", "drain"] as const).map((part) =>
    versus(
      {
        what: `time of ${part === "submit" ? "submits" : "claims and ends"} with ${String(terminalRows)} ended jobs in the table (${store})`,
        unit: "µs/job",
      },
      { name: "full table", rounds: mine.map((taken) => taken[part]) },
      { name: "empty table", rounds: theirs.map((taken) => taken[part]) },
      { atMost: 1.2 },
    ),
  );
}

/** A store with that many ended jobs, which retention leaves alone. */
export async function opened(
  ground: Ground,
  store: "PostgreSQL" | "SQLite FULL",
  rows: number,
): Promise<Actor> {
  const place: Place = store === "PostgreSQL" ? await ground.database() : ground.sqlite();
  const actor = await ground.actor("jobtable", { ...place, kept: rows + 2_000_000 });
  // The first look makes the tables.
  await actor.call("recorded");
  if (rows === 0) return actor;
  if (place.url !== undefined) await seedPostgres(await ground.postgres(), place.url, rows);
  if (place.folder !== undefined) seedSqlite(place.folder, rows);
  const recorded = await actor.call("recorded");
  if (recorded !== rows)
    throw new Error(`${String(recorded)} jobs are on record, not ${String(rows)}`);
  return actor;
}

async function times(actor: Actor, jobs: number): Promise<Times> {
  const submit = 1e6 / (await actor.call("submitCount", jobs));
  const drain = 1e6 / (await actor.call("drain", jobs));
  return { submit, drain };
}
