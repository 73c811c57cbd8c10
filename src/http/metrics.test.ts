import { describe, expect, test } from "vitest";
import { scriptedEngine, stillClock } from "../../test/http/scripted-engine.js";
import type { Counts } from "../ledger/ledger.js";
import type { Clock } from "../runtime/clock.js";
import { createMetrics, type Metrics } from "./metrics.js";

const made = (clock: Clock = stillClock): Metrics =>
  createMetrics({ tasks: ["ocr"], clock, processMetrics: false });

/** `name{labels}` -> value, of the lines that are no comments. */
async function scraped(
  metrics: Metrics,
  engine = scriptedEngine({}),
): Promise<Map<string, number>> {
  const text = await metrics.scrape(engine);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

describe("what the engine reports", () => {
  test("is counted by task and status", async () => {
    const metrics = made();
    const { observer } = metrics;
    observer.jobAccepted("ocr");
    observer.jobAccepted("ocr");
    observer.jobRefused("ocr");
    observer.jobEnded("ocr", "succeeded", 20);
    observer.jobEnded("ocr", "timed_out", 20);
    observer.jobEnded("ocr", "retried", 20);
    observer.requestRefused("ocr");
    observer.requestEnded("ocr", "timeout", 0, 5);
    const values = await scraped(metrics);
    expect(values.get('jobtable_jobs_accepted_total{task="ocr"}')).toBe(2);
    expect(values.get('jobtable_jobs_refused_total{task="ocr"}')).toBe(1);
    expect(values.get('jobtable_jobs_total{task="ocr",status="succeeded"}')).toBe(1);
    expect(values.get('jobtable_jobs_total{task="ocr",status="timed_out"}')).toBe(1);
    expect(values.get('jobtable_jobs_requeued_total{task="ocr",outcome="retried"}')).toBe(1);
    expect(values.get('jobtable_requests_refused_total{task="ocr"}')).toBe(1);
    expect(values.get('jobtable_requests_total{task="ocr",outcome="timeout"}')).toBe(1);
  });

  test("durations are in seconds, in buckets that contain the smaller ones", async () => {
    const metrics = made();
    for (const runMs of [0.5, 1, 30, 4_000, 40_000_000])
      metrics.observer.jobEnded("ocr", "succeeded", runMs);
    metrics.observer.jobStarted("ocr", 250);
    const values = await scraped(metrics);
    const run = (rest: string): number | undefined => values.get(`jobtable_run_seconds${rest}`);
    expect(run('_bucket{le="0.001",task="ocr",kind="job"}')).toBe(2);
    expect(run('_bucket{le="0.05",task="ocr",kind="job"}')).toBe(3);
    expect(run('_bucket{le="5",task="ocr",kind="job"}')).toBe(4);
    expect(run('_bucket{le="28800",task="ocr",kind="job"}')).toBe(4);
    expect(run('_bucket{le="+Inf",task="ocr",kind="job"}')).toBe(5);
    expect(run('_count{task="ocr",kind="job"}')).toBe(5);
    expect(run('_sum{task="ocr",kind="job"}')).toBeCloseTo(40_004.0315);
    expect(values.get('jobtable_queue_wait_seconds_sum{task="ocr",kind="job"}')).toBe(0.25);
  });

  test("names from outside make no series of their own", async () => {
    const metrics = made();
    for (let at = 0; at < 100; at += 1) {
      metrics.observer.jobRefused(`made-up-${String(at)}`);
      metrics.route(`METHOD${String(at)}`, "/jobs").ended(405, 0);
    }
    const values = await scraped(metrics);
    expect(values.get('jobtable_jobs_refused_total{task="other"}')).toBe(100);
    expect(
      values.get('jobtable_http_requests_total{method="other",route="/jobs",status="405"}'),
    ).toBe(100);
    expect([...values.keys()].join()).not.toContain("made-up");
  });

  test("counts stay what they are from one scrape to the next", async () => {
    const metrics = made();
    metrics.route("GET", "/jobs").ended(200, 0.01);
    const key = 'jobtable_http_requests_total{method="GET",route="/jobs",status="200"}';
    expect((await scraped(metrics)).get(key)).toBe(1);
    expect((await scraped(metrics)).get(key)).toBe(1);
  });
});

describe("what is read at the scrape", () => {
  test("the ledger's counts and the pool", async () => {
    const values = await scraped(made());
    expect(Object.fromEntries(values)).toEqual({
      jobtable_ledger_up: 1,
      jobtable_jobs_queued: 3,
      jobtable_jobs_running: 2,
      jobtable_jobs_recorded: 9,
      jobtable_oldest_queued_age_seconds: 1.5,
      jobtable_workers_busy: 3,
      jobtable_workers_available: 1,
      jobtable_requests_waiting: 1,
    });
  });

  test("a ledger that fails takes its own figures with it, and nothing else", async () => {
    const metrics = made();
    await scraped(metrics);
    const engine = scriptedEngine({
      counts: async () => {
        throw new Error("down");
      },
    });
    const values = await scraped(metrics, engine);
    expect(values.get("jobtable_ledger_up")).toBe(0);
    expect(values.has("jobtable_jobs_queued")).toBe(false);
    expect(values.get("jobtable_workers_busy")).toBe(3);
    expect((await scraped(metrics)).get("jobtable_jobs_queued")).toBe(3);
  });

  test("one that never answers is asked once, and given up on after two seconds", async () => {
    const limits: { delayMs: number; fire: () => void }[] = [];
    const metrics = made({
      ...stillClock,
      timer(delayMs, fire) {
        limits.push({ delayMs, fire });
        return () => undefined;
      },
    });
    let asked = 0;
    const engine = scriptedEngine({
      counts: () => {
        asked += 1;
        return new Promise<Counts>(() => undefined);
      },
    });
    const scrapes = [scraped(metrics, engine), scraped(metrics, engine)];
    expect(limits.map(({ delayMs }) => delayMs)).toEqual([2_000, 2_000]);
    for (const { fire } of limits) fire();
    for (const scrape of scrapes) expect((await scrape).get("jobtable_ledger_up")).toBe(0);
    expect(asked).toBe(1);
  });
});

test("the process's own metrics come with it unless they are not wanted", async () => {
  const text = await createMetrics({ tasks: [] }).scrape(scriptedEngine({}));
  expect(text).toContain("nodejs_eventloop_lag_seconds");
  expect(text).toContain("process_cpu_seconds_total");
});
