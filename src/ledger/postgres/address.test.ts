import { describe, expect, test } from "vitest";
import { parseAddress } from "./address.js";

describe("a store's URL", () => {
  test("gives schema and channel, and passes on what is the driver's", () => {
    const address = parseAddress(
      "postgres://me:secret@db.example:6432/work?schema=mine&sslmode=disable&options=-c%20geqo%3Doff",
    );
    expect(address).toEqual({
      connectionString: "postgres://me:secret@db.example:6432/work?sslmode=disable",
      options: "-c geqo=off",
      schema: "mine",
      channel: "jobtable_mine",
      label: "db.example:6432/work",
    });
  });

  test("has defaults, and takes a socket's folder", () => {
    const address = parseAddress("postgresql:///work?host=/run/postgresql");
    expect(address).toMatchObject({ schema: "jobtable", label: "/run/postgresql:5432/work" });
    expect(address.connectionString).toContain("host=%2Frun%2Fpostgresql");
  });

  test.each([
    "postgres",
    "mysql://h/d",
    "postgres://h/d?schema=",
    "postgres://h/d?schema=Jobs",
    "postgres://h/d?schema=pg_toast",
    "postgres://h/d?schema=a.b",
    `postgres://h/d?schema=${"s".repeat(51)}`,
  ])("%s is refused in one line", (url) => {
    expect(() => parseAddress(url)).toThrow(expect.objectContaining({ code: "invalid_config" }));
    expect(() => parseAddress(url)).toThrow(/^[^\n]+$/);
  });

  test("a password is in no message and no label", () => {
    expect(() => parseAddress("postgres://me:secret@h/d?schema=A")).toThrow(/^(?!.*secret)/);
    expect(parseAddress("postgres://me:secret@h/d").label).not.toContain("secret");
  });
});
