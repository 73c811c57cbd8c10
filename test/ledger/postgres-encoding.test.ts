/** A database that can't hold every text is refused, before a job meets it. */
import { randomBytes } from "node:crypto";
import type pg from "pg";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.js";
import { systemClock } from "../../src/runtime/clock.js";
import { silentLogger } from "../../src/runtime/logger.js";
import { openAdmin } from "./postgres-factory.js";

const server = inject("postgresUrl");
let admin: pg.Client;
beforeAll(async () => {
  admin = await openAdmin(server);
});
afterAll(() => admin.end());

test.each(["LATIN1", "SQL_ASCII"])(
  "%s is named, with what to do, and nothing is made there",
  async (encoding) => {
    const name = `encoded_${randomBytes(6).toString("hex")}`;
    await admin.query(`CREATE DATABASE ${name} ENCODING '${encoding}' TEMPLATE template0
      LC_COLLATE 'C' LC_CTYPE 'C'`);
    try {
      const url = new URL(server);
      url.pathname = name;
      const opening = openPostgresLedger({
        url: url.href,
        clock: systemClock,
        logger: silentLogger,
      });
      await expect(opening).rejects.toMatchObject({
        code: "invalid_config",
        message: expect.stringMatching(`${name}: its database is in ${encoding}.*'UTF8'`) as string,
      });
      const inside = await openAdmin(url.href);
      const { rows } = await inside.query("SELECT FROM pg_namespace WHERE nspname = 'jobtable'");
      await inside.end();
      expect(rows).toHaveLength(0);
    } finally {
      await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  },
);
