import { describe, expect, test } from "vitest";
import {
  ALL_STATUSES,
  allows,
  isTerminal,
  STATUSES,
  TERMINAL_STATUSES,
  TRANSITIONS,
  type JobEvent,
  type Status,
} from "./state.js";

const EVENTS = Object.keys(TRANSITIONS) as JobEvent[];

test("the statuses are those of the table's CHECK constraint, in a job's order", () => {
  expect(ALL_STATUSES).toEqual([
    "queued",
    "running",
    "succeeded",
    "failed",
    "timed_out",
    "cancelled",
  ]);
  expect(TERMINAL_STATUSES).toEqual(["succeeded", "failed", "timed_out", "cancelled"]);
  expect(Object.keys(STATUSES).filter((status) => isTerminal(status as Status))).toEqual(
    TERMINAL_STATUSES,
  );
});

test("the moves are these and no others", () => {
  const moves = new Set(
    EVENTS.map((event) => `${TRANSITIONS[event].from} -> ${TRANSITIONS[event].to}`),
  );
  expect([...moves].sort()).toEqual([
    "queued -> cancelled",
    "queued -> failed",
    "queued -> running",
    "queued -> timed_out",
    "running -> cancelled",
    "running -> failed",
    "running -> queued",
    "running -> succeeded",
    "running -> timed_out",
  ]);
});

describe("every status has", () => {
  test("a way in, the first apart, and a way out unless it is terminal", () => {
    for (const status of ALL_STATUSES) {
      const ways = EVENTS.map((event) => TRANSITIONS[event]);
      expect(ways.some((way) => way.to === status)).toBe(true);
      expect(ways.some((way) => (way.from as Status) === status)).toBe(!isTerminal(status));
    }
  });

  test("no way out by anyone but the owner or the sweeper once it is running", () => {
    for (const event of EVENTS)
      if (TRANSITIONS[event].from === "running")
        expect(["owner", "sweeper"]).toContain(TRANSITIONS[event].by);
  });
});

test("allows says what the table says", () => {
  for (const status of ALL_STATUSES)
    for (const event of EVENTS)
      expect(allows(status, event)).toBe((TRANSITIONS[event].from as Status) === status);
});
