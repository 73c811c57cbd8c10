import { expect, test } from "vitest";
import { statementsOf } from "./session.js";

/** What PostgreSQL keeps of a name. */
const NAME_BYTES = 63;

test("a statement that is prepared has a name of its own, and another one in each schema", () => {
  const names = ["one", "other"].flatMap((schema) =>
    [...statementsOf(schema).values()].filter(({ text }) => text.includes(schema)),
  );
  expect(names.length).toBeGreaterThan(20);
  expect(new Set(names.map(({ name }) => name.slice(0, NAME_BYTES))).size).toBe(names.length);
});
