import { expect, test } from "vitest";
import { spellOutBooleans } from "./setting-flags.js";

test.each([
  [
    ["serve", "--async-enabled", "a.ts"],
    ["serve", "--async-enabled=true", "a.ts"],
  ],
  [
    ["serve", "a.ts", "--async-enabled"],
    ["serve", "a.ts", "--async-enabled=true"],
  ],
  [["--no-async-enabled"], ["--async-enabled=false"]],
  [["--async-enabled=off"], ["--async-enabled=off"]],
  [
    ["--async-enabled", "false"],
    ["--async-enabled", "false"],
  ],
  [
    ["--no-worker", "--max-workers", "2"],
    ["--no-worker", "--max-workers", "2"],
  ],
  [
    ["--", "--async-enabled"],
    ["--", "--async-enabled"],
  ],
])("%j becomes %j", (given, spelled) => {
  expect(spellOutBooleans(given)).toEqual(spelled);
});
