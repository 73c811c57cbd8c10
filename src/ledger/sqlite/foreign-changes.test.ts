import { appendFileSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { VirtualClock } from "../../../test/virtual-clock.js";
import { ForeignChanges } from "./foreign-changes.js";

let folder: string;
let clock: VirtualClock;
let version: number;
let asked: number;
let jobsWait: boolean;
let reports: ("look" | "work")[];
let changes: ForeignChanges;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "jobtable-changes-"));
  clock = new VirtualClock();
  version = 1;
  asked = 0;
  jobsWait = true;
  reports = [];
  changes = new ForeignChanges({
    // There is no such file: only the fallback and `ask` are at work here.
    walPath: join(folder, "none-wal"),
    clock,
    dataVersion: () => {
      asked += 1;
      return version;
    },
    hasWork: () => jobsWait,
    report: ({ look }) => reports.push(look ? "look" : "work"),
  });
});

afterEach(() => {
  changes.close();
  rmSync(folder, { recursive: true });
});

test("a change is reported at once, nothing else is", () => {
  changes.ask();
  expect(reports).toEqual([]);
  version += 1;
  changes.ask();
  changes.ask();
  expect(reports).toEqual(["work", "look"]);
});

test("no work is reported while no job waits", () => {
  jobsWait = false;
  version += 1;
  changes.ask();
  expect(reports).toEqual(["look"]);
});

test("where files can't be watched, it is noticed within 250 ms, for four questions a second", async () => {
  const before = asked;
  await clock.advance(10_000);
  expect(asked - before).toBe(40);
  version += 1;
  await clock.advance(250);
  expect(reports).toEqual(["work", "look"]);
});

test("a file that is watched is asked about once a second", async () => {
  const walPath = join(folder, "jobs.db-wal");
  writeFileSync(walPath, "");
  let questions = 0;
  const watching = new ForeignChanges({
    walPath,
    clock,
    dataVersion: () => {
      questions += 1;
      return 1;
    },
    hasWork: () => false,
    report: () => undefined,
  });
  const before = questions;
  await clock.advance(10_000);
  watching.close();
  expect(questions - before).toBe(10);
});

test.each([10, 100, 250])(
  "a commit that takes %i ms on its disk is noticed when it is there",
  async (ms) => {
    const walPath = join(folder, "jobs.db-wal");
    writeFileSync(walPath, "");
    let onAsk: () => void = () => undefined;
    let seen = 1;
    let noticed = false;
    const watching = new ForeignChanges({
      walPath,
      clock,
      dataVersion: () => {
        onAsk();
        return seen;
      },
      hasWork: () => false,
      report: () => (noticed = true),
    });
    const touched = new Promise<void>((resolve) => (onAsk = resolve));
    appendFileSync(walPath, "frames");
    await touched;
    await clock.advance(ms);
    expect(noticed).toBe(false);
    seen = 2;
    await clock.advance(ms + 30);
    watching.close();
    expect(noticed).toBe(true);
  },
);

test("many changes are reported at a bounded pace, and the last one always is", async () => {
  for (let ms = 0; ms < 100; ms += 1) {
    version += 1;
    changes.ask();
    await clock.advance(1);
  }
  expect(reports.filter((report) => report === "look").length).toBeLessThanOrEqual(11);
  expect(reports.filter((report) => report === "work").length).toBeLessThanOrEqual(21);
  await clock.advance(20);
  reports = [];
  await clock.advance(100);
  expect(reports).toEqual([]);
});

test("looks take a tenth of the time at most, however long one takes", async () => {
  let looks = 0;
  const tookMs = 30;
  const stepMs = 5;
  for (let ms = 0; ms < 6_000; ms += stepMs) {
    version += 1;
    changes.ask();
    while (looks < reports.filter((report) => report === "look").length) {
      looks += 1;
      await clock.advance(tookMs);
      changes.looked(tookMs);
    }
    await clock.advance(stepMs);
  }
  expect(looks).toBeGreaterThan(5);
  expect((looks * tookMs) / (6_000 + looks * tookMs)).toBeLessThanOrEqual(0.1);
});

test("after close nothing is asked or reported", async () => {
  version += 1;
  changes.close();
  const before = asked;
  await clock.advance(10_000);
  expect({ asked, reports }).toEqual({ asked: before, reports: [] });
});

test("a file that takes the place of the watched one is watched instead", async () => {
  const walPath = join(folder, "jobs.db-wal");
  writeFileSync(walPath, "old");
  let onAsk: () => void = () => undefined;
  const touched = (): Promise<void> => new Promise((resolve) => (onAsk = resolve));
  const watching = new ForeignChanges({
    walPath,
    clock,
    dataVersion: () => {
      onAsk();
      return 1;
    },
    hasWork: () => false,
    report: () => undefined,
  });
  const gone = touched();
  writeFileSync(join(folder, "next"), "new");
  renameSync(join(folder, "next"), walPath);
  await gone;
  // What is heard of the old file passes, and the fallback has been round.
  await clock.advance(2_000);
  const heard = touched();
  appendFileSync(walPath, "more");
  await heard;
  watching.close();
  expect(clock.pendingTimers).toBe(1);
});
