/** docs/faults.md names tests: that they exist under these names, in these files. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const SECTION = "## Where each kind is tested";

interface Kind {
  readonly number: string;
  readonly tests: readonly (readonly [file: string, name: string])[];
}

/** The section's list: of each kind the number, and the file and name of each of its tests. */
function kinds(): Kind[] {
  const text = readFileSync(resolve(ROOT, "docs/faults.md"), "utf8");
  const section = text.slice(text.indexOf(SECTION)).split(/\n(?=## )/)[0] ?? "";
  return section
    .split(/^- \*\*/m)
    .slice(1)
    .map((part) => ({
      number: /^F\d+/.exec(part)?.[0] ?? part,
      tests: [...part.matchAll(/^ {2}- `([^`]+)`: (.*)$/gm)].flatMap(([, file = "", names = ""]) =>
        [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => [file, name] as const),
      ),
    }));
}

/** All but those of parts that are not built: webhooks, batches, streams of events. */
const NUMBERS = [...range(1, 30), ...range(33, 39), 42].map((number) => `F${String(number)}`);

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

test("every kind is there once, and has tests", () => {
  expect(kinds().map(({ number }) => number)).toEqual(NUMBERS);
  expect(kinds().filter(({ tests }) => tests.length === 0)).toEqual([]);
});

test("every test that is named is there", () => {
  const missing = kinds().flatMap(({ number, tests }) =>
    tests
      .filter(([file, name]) => !readFileSync(resolve(ROOT, file), "utf8").includes(name))
      .map(([file, name]) => `${number}: ${file}: ${name}`),
  );
  expect(missing).toEqual([]);
});
