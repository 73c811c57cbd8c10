import { describe, expect, test } from "vitest";
import { formatJobId, parseJobId } from "./id.js";

const ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

describe("a job's id", () => {
  test("is read in both spellings", () => {
    expect(parseJobId(ULID)).toBe(ULID);
    expect(parseJobId(formatJobId(ULID))).toBe(ULID);
    expect(formatJobId(ULID)).toBe(`job_${ULID}`);
  });

  test.each([
    ["nothing", ""],
    ["the prefix alone", "job_"],
    ["two prefixes", `job_job_${ULID}`],
    ["another prefix", `plan_${ULID}`],
    ["small letters", ULID.toLowerCase()],
    ["a letter that Crockford leaves out", `${ULID.slice(0, 25)}U`],
    ["a letter that Crockford would read as a digit", `${ULID.slice(0, 25)}O`],
    ["more than 128 bits", `8${ULID.slice(1)}`],
    ["one character less", ULID.slice(1)],
    ["one character more", `${ULID}0`],
    ["a line break", `${ULID}\n`],
  ])("is not %s", (_, text) => {
    expect(parseJobId(text)).toBeNull();
  });
});
