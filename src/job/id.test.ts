import { describe, expect, test } from "vitest";
import { formatJobId, formatPlanId, isUlid, parseJobId, parsePlanId } from "./id.js";

const ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

const SPELLINGS = [
  { of: "job", prefix: "job_", other: "plan_", format: formatJobId, parse: parseJobId },
  { of: "plan", prefix: "plan_", other: "job_", format: formatPlanId, parse: parsePlanId },
] as const;

describe.each(SPELLINGS)("a $of's id", ({ prefix, other, format, parse }) => {
  test("is read in both spellings", () => {
    expect(parse(ULID)).toBe(ULID);
    expect(parse(format(ULID))).toBe(ULID);
    expect(format(ULID)).toBe(prefix + ULID);
  });

  test.each([
    ["nothing", ""],
    ["the prefix alone", prefix],
    ["two prefixes", prefix + prefix + ULID],
    ["another prefix", other + ULID],
    ["small letters", ULID.toLowerCase()],
    ["a letter that Crockford leaves out", `${ULID.slice(0, 25)}U`],
    ["a letter that Crockford would read as a digit", `${ULID.slice(0, 25)}O`],
    ["more than 128 bits", `8${ULID.slice(1)}`],
    ["one character less", ULID.slice(1)],
    ["one character more", `${ULID}0`],
    ["a line break", `${ULID}\n`],
  ])("is not %s", (_, text) => {
    expect(parse(text)).toBeNull();
  });
});

test("a ULID alone has no prefix", () => {
  expect(isUlid(ULID)).toBe(true);
  expect(isUlid(formatJobId(ULID))).toBe(false);
});
