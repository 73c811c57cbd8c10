import { describe, expect, it } from "vitest";
import { parseDuration } from "./duration.js";

describe("parseDuration", () => {
  it.each([
    ["250ms", "s", 250],
    ["30s", "ms", 30_000],
    ["5m", "ms", 300_000],
    ["1h", "s", 3_600_000],
    ["2d", "s", 172_800_000],
    ["1.5h", "ms", 5_400_000],
    [".5s", "ms", 500],
    [" 10 S ", "ms", 10_000],
    ["300", "ms", 300],
    ["300", "s", 300_000],
    [1, "s", 1_000],
    [0.25, "s", 250],
    [0, "s", 0],
    ["0", "ms", 0],
    ["0s", "ms", 0],
  ] as const)("reads %j in %s as %d ms", (value, unit, ms) => {
    expect(parseDuration(value, unit)).toBe(ms);
  });

  it.each([
    "",
    "abc",
    "-1",
    "-5s",
    "5 weeks",
    "1e3",
    "5s5",
    "1h30m",
    "0x10",
    "Infinity",
    "NaN",
    "9e99",
  ])("refuses %j", (text) => {
    expect(parseDuration(text, "ms")).toBeUndefined();
  });

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_VALUE])("refuses %d", (value) => {
    expect(parseDuration(value, "ms")).toBeUndefined();
  });

  it("never makes nothing out of something", () => {
    expect(parseDuration("0.2ms", "ms")).toBe(1);
    expect(parseDuration(0.0001, "s")).toBe(1);
  });

  it("refuses what a number can't hold exactly", () => {
    expect(parseDuration("999999999999999999d", "ms")).toBeUndefined();
  });
});
