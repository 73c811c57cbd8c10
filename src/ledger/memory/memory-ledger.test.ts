/** What holds for the memory ledger alone; all else is the conformance suite's (test/ledger). */
import { expect, test } from "vitest";
import type { NewJob } from "../../job/job.js";
import type { Clock } from "../../runtime/clock.js";
import type { End, Ledger } from "../ledger.js";
import { openMemoryLedger } from "./memory-ledger.js";

const WORKER = "worker-00000001";
const stillClock: Clock = {
  nowMs: () => 1_000,
  monotonicMs: () => 0,
  timer: () => () => undefined,
};

function open(): Ledger {
  return openMemoryLedger({ clock: stillClock });
}

function jobs(count: number, given: Partial<NewJob> = {}): NewJob[] {
  return Array.from({ length: count }, (_, at) => {
    const jobId = String(at).padStart(26, "0");
    return { jobId, task: "echo", schemaVersion: 1, payloadJson: `"${jobId}"`, ...given };
  });
}

async function submitAndClaim(ledger: Ledger, given: Partial<NewJob>): Promise<string> {
  await ledger.submit(jobs(1, given), { maxDepth: 1 });
  const [claimed] = await ledger.claim({ workerId: WORKER, tasks: ["echo"], limit: 1 });
  return claimed?.payloadJson ?? "";
}

const RELEASE = { event: "release", startedAtMs: stillClock.nowMs() } as const;

function settle(ledger: Ledger, attempt: number, end: End): ReturnType<Ledger["settle"]> {
  return ledger.settle([{ jobId: "0".repeat(26), workerId: WORKER, attempt, end }]);
}

test("the payload leaves memory with the runner of the last attempt, and the request id stays", async () => {
  const ledger = open();
  const id = "0".repeat(26);
  const payloadJson = await submitAndClaim(ledger, { requestId: "r-1" });
  expect(payloadJson).toBe(`"${id}"`);
  expect(await ledger.payload(id)).toBeNull();
  expect(await settle(ledger, 1, { event: "succeed", resultJson: "1" })).toEqual(["succeeded"]);
  expect(await ledger.result(id)).toMatchObject({ resultJson: "1", job: { requestId: "r-1" } });
});

test("it stays while attempts are left, and leaves with the end", async () => {
  const ledger = open();
  const id = "0".repeat(26);
  await submitAndClaim(ledger, { maxAttempts: 2 });
  expect(await ledger.payload(id)).toBe(`"${id}"`);
  expect(await settle(ledger, 1, { event: "stop" })).toEqual(["cancelled"]);
  expect(await ledger.payload(id)).toBeNull();
});

test("a release brings it back, but not to a job that was cancelled meanwhile", async () => {
  const ledger = open();
  const id = "0".repeat(26);
  const payloadJson = await submitAndClaim(ledger, {});
  expect(await settle(ledger, 1, { ...RELEASE, payloadJson })).toEqual(["queued"]);
  expect(await ledger.payload(id)).toBe(payloadJson);
  await ledger.claim({ workerId: WORKER, tasks: ["echo"], limit: 1 });
  await ledger.cancel([id]);
  expect(await settle(ledger, 1, { ...RELEASE, payloadJson })).toEqual(["cancelled"]);
  expect(await ledger.payload(id)).toBeNull();
});

test("a page looks at a bounded number of records, and the pages together at all", async () => {
  const ledger = open();
  const [wanted, ...others] = jobs(25_000);
  if (wanted === undefined) throw new Error("no job");
  await ledger.submit([{ ...wanted, task: "ocr" }, ...others], { maxDepth: 25_000 });
  let page = await ledger.list({ task: "ocr", limit: 10 });
  const sizes = [page.jobs.length];
  while (page.nextCursor !== undefined) {
    page = await ledger.list({ task: "ocr", limit: 10, cursor: page.nextCursor });
    sizes.push(page.jobs.length);
  }
  expect(sizes).toEqual([0, 0, 1]);
});

test("listeners are called in the same turn, when all of the verb's changes are in place", async () => {
  const ledger = open();
  const seen: unknown[] = [];
  ledger.onWork(() => {
    void ledger.counts().then((counts) => seen.push(counts.queued));
  });
  const submitted = ledger.submit(jobs(3), { maxDepth: 3 });
  await Promise.resolve();
  expect(seen).toEqual([3]);
  await submitted;
});

test("a listener that another one removes meanwhile is not called any more", async () => {
  const ledger = open();
  const heard: string[] = [];
  ledger.onWork(() => {
    heard.push("first");
    leave();
  });
  const leave = ledger.onWork(() => heard.push("second"));
  await ledger.submit(jobs(1), { maxDepth: 1 });
  expect(heard).toEqual(["first"]);
});
