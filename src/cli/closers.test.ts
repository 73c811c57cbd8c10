import { expect, test } from "vitest";
import { silentLogger } from "../runtime/logger.js";
import { Closers } from "./closers.js";

test("closes in reverse, each once, whatever the others do", async () => {
  const closed: string[] = [];
  const errors: unknown[] = [];
  const closers = new Closers({ ...silentLogger, error: ({ part }) => errors.push(part) });
  closers.add("ledger", async () => closed.push("ledger"));
  closers.add("http", () => Promise.reject(new Error("no")));
  closers.add("engine", async () => closed.push("engine"));
  await closers.closeAll();
  await closers.closeAll();
  expect(closed).toEqual(["engine", "ledger"]);
  expect(errors).toEqual(["http"]);
});
