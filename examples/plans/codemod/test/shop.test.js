import assert from "node:assert/strict";
import { test } from "node:test";
import { lines } from "../src/log.js";
import { total } from "../src/orders.js";
import { take } from "../src/stock.js";

test("odd orders are warned of", () => {
  lines.length = 0;
  assert.equal(total([3, -1]), 2);
  assert.equal(take(new Map([["pen", 4]]), "pen", 2), true);
  assert.equal(take(new Map(), "ink", 1), false);
  assert.deepEqual(lines, [
    "warn: negative price -1",
    "warn: pen runs low",
    "warn: ink is out of stock",
  ]);
});
