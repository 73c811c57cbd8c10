import Database from "better-sqlite3";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { migrations, openEngine, openLedger } from "./compose.js";
import { silentLogger } from "./runtime/logger.js";
import { createTaskRegistry } from "./task/registry.js";

const folders: string[] = [];

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), "jobtable-compose-"));
  folders.push(folder);
  return join(folder, "deep", "jobs.db");
}

async function openAndClose(store: string, create?: boolean): Promise<void> {
  const given = create === undefined ? {} : { create };
  await (await openLedger(store, { logger: silentLogger, ...given })).close();
}

const missing = { name: "LedgerError", code: "ledger_missing" };

describe("who only looks", () => {
  test("is told that there is no ledger, and makes none", async () => {
    const path = newPath();
    await expect(openAndClose(`sqlite:${path}`, false)).rejects.toMatchObject({
      ...missing,
      message: expect.stringMatching(/^there is no ledger in \S+jobs\.db: .+$/) as string,
    });
    expect(existsSync(join(path, ".."))).toBe(false);
  });

  test("makes none of an empty file or of someone else's database, and leaves it as it is", async () => {
    const empty = join(newPath(), "../..", "empty.db");
    writeFileSync(empty, "");
    await expect(openAndClose(`sqlite:${empty}`, false)).rejects.toMatchObject(missing);
    const path = join(newPath(), "../..", "other.db");
    const db = new Database(path);
    db.exec("CREATE TABLE other (a)");
    await expect(openAndClose(`sqlite:${path}`, false)).rejects.toMatchObject(missing);
    expect(db.prepare("SELECT name FROM sqlite_schema").pluck().all()).toEqual(["other"]);
    expect(db.pragma("journal_mode", { simple: true })).toBe("delete");
    db.close();
  });

  test("opens a ledger that is there", async () => {
    const store = `sqlite:${newPath()}`;
    await openAndClose(store);
    await openAndClose(store, false);
  });

  test("finds nothing in the memory of a process that has just begun", async () => {
    await expect(openAndClose("memory", false)).rejects.toMatchObject(missing);
  });
});

describe("what opening would run", () => {
  test("everything where there is nothing, and nothing afterwards; it runs none of it", async () => {
    const path = newPath();
    const plan = await migrations(`sqlite:${path}`);
    expect(plan).toMatchObject({ from: 0, to: (plan.statements.length - 1) / 2 });
    expect(plan.statements.join("\n")).toMatch(/CREATE TABLE async_jobs/);
    expect(existsSync(path)).toBe(false);
    await openAndClose(`sqlite:${path}`);
    expect(await migrations(`sqlite:${path}`)).toEqual({
      from: plan.to,
      to: plan.to,
      statements: [],
    });
    // Executing the plan gives what opening gives, and a ledger that opens.
    const byHand = newPath();
    mkdirSync(dirname(byHand), { recursive: true });
    const db = new Database(byHand);
    for (const statement of plan.statements) db.exec(statement);
    const opened = new Database(path, { readonly: true });
    const schema = "SELECT name, sql FROM sqlite_schema ORDER BY name";
    expect(db.prepare(schema).all()).toEqual(opened.prepare(schema).all());
    db.close();
    opened.close();
    await openAndClose(`sqlite:${byHand}`, false);
    expect((await migrations(`sqlite:${byHand}`)).statements).toEqual([]);
  });

  test("the steps that an older ledger has not seen", async () => {
    const path = newPath();
    await openAndClose(`sqlite:${path}`);
    const db = new Database(path);
    db.exec("DELETE FROM jobtable_migrations WHERE number > 2");
    db.close();
    const { from, to, statements } = await migrations(`sqlite:${path}`);
    expect([from, statements.length]).toEqual([2, 2 * (to - 2)]);
    // Who only looks leaves it as it is.
    await expect(openAndClose(`sqlite:${path}`, false)).rejects.toMatchObject({
      code: "ledger_older",
      message: expect.stringMatching(/version 2 .* jobtable migrate/) as string,
    });
    expect(await migrations(`sqlite:${path}`)).toEqual({ from, to, statements });
  });

  test("a newer ledger is refused, and what is no store is named", async () => {
    const path = newPath();
    await openAndClose(`sqlite:${path}`);
    const db = new Database(path);
    db.exec("INSERT INTO jobtable_migrations VALUES (999, 'later', '')");
    db.close();
    await expect(migrations(`sqlite:${path}`)).rejects.toMatchObject({ code: "ledger_newer" });
    writeFileSync(path, "this is no database, and long enough to be seen as none".repeat(99));
    await expect(migrations(`sqlite:${path}`)).rejects.toMatchObject({ code: "ledger_unreadable" });
    await expect(migrations("mysql:x")).rejects.toMatchObject({ code: "invalid_config" });
  });

  test("memory has none", async () => {
    expect(await migrations("memory")).toEqual({ from: 0, to: 0, statements: [] });
  });
});

test("within a transaction of one's own only where the store is PostgreSQL", async () => {
  const { ledger, within } = await openEngine({
    store: "memory",
    tasks: createTaskRegistry([]),
    settings: {},
    logger: undefined,
    worker: false,
  });
  expect(() => within({ query: () => Promise.resolve({ rows: [] }) })).toThrow(/PostgreSQL/);
  await ledger.close();
});
