import { describe, expect, test } from "vitest";
import { readKey } from "./idempotency-key.js";

describe("an idempotency key", () => {
  test.each<[readonly string[], unknown, string | undefined]>([
    [[], undefined, undefined],
    [["order-7"], undefined, "order-7"],
    [['"order-7"'], undefined, "order-7"],
    [[String.raw`"a \"b\" \\"`], undefined, String.raw`a "b" \ `.trim()],
    [['"open'], undefined, '"open'],
    [[], "order-7", "order-7"],
    [[], "ключ 😀", "ключ 😀"],
    [['"order-7"'], "order-7", "order-7"],
    [["k".repeat(255)], undefined, "k".repeat(255)],
  ])("header %j, body %j: %j", (headers, body, key) => {
    expect(readKey(headers, body)).toEqual({ kind: "key", key });
  });

  test.each<[readonly string[], unknown, string, string]>([
    [[""], undefined, "Idempotency-Key", "must be text of 1 to 255 characters"],
    [['""'], undefined, "Idempotency-Key", "must be text of 1 to 255 characters"],
    [["k".repeat(256)], undefined, "Idempotency-Key", "must be text of 1 to 255 characters"],
    [["schlüssel"], undefined, "Idempotency-Key", "must be ASCII"],
    [["a", "a"], undefined, "Idempotency-Key", "was sent more than once"],
    [["a"], "b", "idempotency_key", "is not the one of the header Idempotency-Key"],
    [[], "", "idempotency_key", "must be text of 1 to 255 characters"],
    [[], 7, "idempotency_key", "must be text of 1 to 255 characters"],
    [[], null, "idempotency_key", "must be text of 1 to 255 characters"],
    [[], "a\0", "idempotency_key", "must not hold NUL characters or lone surrogates"],
    [[], "\ud800", "idempotency_key", "must not hold NUL characters or lone surrogates"],
  ])("header %j, body %j is refused", (headers, body, path, message) => {
    expect(readKey(headers, body)).toEqual({
      kind: "refused",
      issue: { path, message: expect.stringContaining(message) as string },
    });
  });
});
