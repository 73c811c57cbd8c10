import { describe, expect, it } from "vitest";
import { VirtualClock } from "../../test/virtual-clock.js";
import { Reports } from "./reports.js";

function scene() {
  const clock = new VirtualClock();
  const progress: string[] = [];
  const lines: string[] = [];
  const reports = new Reports(clock, {
    progress: (json) => progress.push(json),
    log: (level, message, fields) => lines.push(`${level} ${message} ${fields}`),
  });
  return { clock, progress, lines, reports };
}

describe("progress", () => {
  it("sends the first at once, then the newest every 100 ms", async () => {
    const { clock, progress, reports } = scene();
    for (let step = 0; step < 50; step += 1) {
      reports.progress(step);
      await clock.advance(10);
    }
    expect(progress).toEqual(["0", "9", "19", "29", "39", "49"]);
    await clock.advance(1_000);
    expect(progress).toHaveLength(6);
    expect(clock.pendingTimers).toBe(0);
  });

  it("goes on while a handler spins, which lets no timer fire", async () => {
    const { clock, progress, reports } = scene();
    reports.progress(1);
    reports.progress(2);
    await clock.suspend(0);
    const timeless = clock.suspend(150);
    reports.progress(3);
    expect(progress).toEqual(["1", "3"]);
    await timeless;
    expect(progress).toEqual(["1", "3"]);
  });

  it("sends what waits at the end, and nothing after it", async () => {
    const { clock, progress, reports } = scene();
    reports.progress(1);
    reports.progress(2);
    reports.end();
    reports.end();
    reports.progress(3);
    await clock.advance(1_000);
    expect(progress).toEqual(["1", "2"]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("drops all at once when it is muted", async () => {
    const { clock, progress, reports } = scene();
    reports.progress(1);
    reports.progress(2);
    reports.mute();
    await clock.advance(1_000);
    expect(progress).toEqual(["1"]);
    expect(clock.pendingTimers).toBe(0);
  });

  it("drops what is no JSON or too large, and warns once", () => {
    const { progress, lines, reports } = scene();
    reports.progress({ a: 1n });
    reports.progress("x".repeat(5_000));
    reports.progress("fine");
    expect(progress).toEqual(['"fine"']);
    expect(lines).toEqual([
      "warn progress was dropped: ResultNotSerializable: progress.a is a BigInt {}",
    ]);
  });
});

describe("log", () => {
  it("passes fields as JSON, whatever they hold", () => {
    const { lines, reports } = scene();
    const circular: Record<string, unknown> = {};
    circular["self"] = circular;
    reports.log("info", "plain", { a: 1 });
    reports.log("debug", "odd", { n: 1n, error: new RangeError("x"), none: undefined });
    reports.log("warn", "circular", circular);
    reports.log("error", "large", { text: "x".repeat(5_000) });
    reports.log("info", "none");
    reports.log("info", "not an object", JSON.parse("[1]") as Record<string, unknown>);
    expect(lines.map((line) => line.slice(0, 60))).toEqual([
      'info plain {"a":1}',
      'debug odd {"n":"1","error":"RangeError: x"}',
      expect.stringContaining('warn circular {"fields":"dropped: TypeError') as string,
      'error large {"fields":"dropped: more than 4096 bytes"}',
      "info none {}",
      "info not an object {}",
    ]);
  });

  it("cuts messages, and makes them storable", () => {
    const { lines, reports } = scene();
    reports.log("info", `a\0${"x".repeat(5_000)}`);
    reports.log("info", JSON.parse("5") as string);
    expect(lines[0]).toHaveLength("info  {}".length + 2_000);
    expect(lines[0]).toContain("a\uFFFD");
    expect(lines[1]).toBe("info 5 {}");
  });

  it("limits the rate, and says how many were dropped", async () => {
    const { clock, lines, reports } = scene();
    for (let line = 0; line < 1_000; line += 1) reports.log("info", "x");
    expect(lines).toHaveLength(200);
    await clock.advance(1_000);
    for (let line = 0; line < 1_000; line += 1) reports.log("info", "y");
    expect(lines).toHaveLength(251);
    expect(lines[200]).toBe('warn log lines were dropped: too many {"dropped":800}');
    reports.end();
    reports.log("info", "z");
    expect(lines.at(-1)).toBe('warn log lines were dropped: too many {"dropped":950}');
  });
});
