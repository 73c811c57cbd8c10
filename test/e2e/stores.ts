/** Stores for tests that run on each kind of them. */
import { randomBytes } from "node:crypto";
import { inject, onTestFinished } from "vitest";
import { openAdmin } from "../ledger/postgres-factory.js";

/** One that is empty, by kind; processes that share it share their working folder, too. */
export const NEW_STORE = { sqlite: () => "sqlite:jobs.db", postgres: newPostgresStore } as const;

/** A schema that goes when the test has ended. */
function newPostgresStore(): string {
  const server = inject("postgresUrl");
  const schema = `test_${randomBytes(6).toString("hex")}`;
  onTestFinished(async () => {
    const admin = await openAdmin(server);
    await admin.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    await admin.end();
  });
  return `${server}?schema=${schema}`;
}
