/** Hostile and large texts: the same answer from every ledger, and never a stuck job. */
import { expect } from "vitest";
import { MAX_ERROR_CHARS, MAX_REQUEST_ID_CHARS } from "../../../src/job/limits.js";
import type { End } from "../../../src/ledger/ledger.js";
import {
  accept,
  acceptOne,
  beat,
  beatOf,
  claimOf,
  claimOne,
  jobIn,
  newJob,
  PATIENT,
  present,
  retryIn,
  see,
  settleOne,
} from "../acts.js";
import type { Cases } from "../harness.js";

const LONE = "\ud83d";
const HOSTILE = `a\0b${LONE}c\udc00d "quoted" \\ \u2028 é 👩‍👩‍👧 漢字 '); DROP TABLE async_jobs; --`;
/** What is left of it in a text column: no NUL, no half of a pair. */
const CLEANED = `a\ufffdb\ufffdc\ufffdd "quoted" \\ \u2028 é 👩‍👩‍👧 漢字 '); DROP TABLE async_jobs; --`;

/** Texts of JSON that hold what columns find hard; JSON escapes NUL and lone halves itself. */
const DOCUMENTS: Readonly<Record<string, string>> = {
  "NUL, lone surrogates, emoji": JSON.stringify({ schema_version: 1, input: HOSTILE }),
  "keys named like properties": `{"__proto__":{"polluted":true},"constructor":1,"toString":null,"":2}`,
  "the same key twice, spaces, numbers as written": `{ "a": 1,\n\t"a": 1.0e2, "b": 12345678901234567890 }`,
  "a bare string": `"${"x".repeat(70_000)}"`,
  "deep nesting": `${"[".repeat(1_000)}${"]".repeat(1_000)}`,
  null: "null",
};

export function textCases(cases: Cases): void {
  documentCases(cases);
  messageCases(cases);
}

function documentCases({ check }: Cases): void {
  for (const [name, json] of Object.entries(DOCUMENTS))
    check(`payload, progress and result come back as written: ${name}`, async (h) => {
      const { jobId } = await acceptOne(h.ledger, { payloadJson: json, maxAttempts: 2 });
      expect(await h.ledger.payload(jobId)).toBe(json);
      const { job, payloadJson } = await claimOne(h.ledger);
      expect(payloadJson).toBe(json);
      await h.ledger.heartbeat(beat(), [beatOf(job, json)]);
      expect((await see(h.ledger, jobId)).progressJson).toBe(json);
      const end: End = { event: "succeed", resultJson: json };
      expect(await settleOne(h.ledger, claimOf(job), end)).toBe(true);
      expect((await h.ledger.result(jobId))?.resultJson).toBe(json);
    });

  check("ten megabytes go in and come out", async (h) => {
    const payloadJson = `{"schema_version":1,"img_data":"${"QUJD".repeat(2_621_440)}"}`;
    const { jobId } = await acceptOne(h.ledger, { payloadJson });
    const claimed = await claimOne(h.ledger);
    expect(claimed.payloadJson === payloadJson).toBe(true);
    const end: End = { event: "succeed", resultJson: payloadJson };
    expect(await settleOne(h.ledger, claimOf(claimed.job), end)).toBe(true);
    const found = present(await h.ledger.result(jobId));
    expect(found.resultJson === payloadJson).toBe(true);
  });
}

function messageCases({ check }: Cases): void {
  check("the caller's request id is cleaned and bounded", async (h) => {
    const [hostile, long, lone, empty] = await accept(h.ledger, [
      newJob({ requestId: HOSTILE }),
      newJob({ requestId: "r".repeat(5_000) }),
      newJob({ requestId: LONE }),
      newJob({ requestId: "" }),
    ]);
    expect(present(hostile).requestId).toBe(CLEANED);
    expect(present(long).requestId).toHaveLength(MAX_REQUEST_ID_CHARS);
    expect(present(lone).requestId).toBe("\ufffd");
    expect(present(empty).requestId).toBe("");
    for (const job of [hostile, long, lone, empty])
      expect(await see(h.ledger, present(job).jobId)).toEqual(job);
  });

  const ends = {
    fail: (errorMessage: string): End => ({ event: "fail", errorMessage }),
    time_out: (errorMessage: string): End => ({ event: "time_out", errorMessage }),
    retry: (errorMessage: string): End => retryIn(0, errorMessage),
  };
  for (const [event, end] of Object.entries(ends)) {
    check(`${event}: a hostile message is cleaned, and the job moves`, async (h) => {
      const { job } = await jobIn(h.ledger, "running", { maxAttempts: 2 });
      expect(await settleOne(h.ledger, claimOf(job), end(HOSTILE))).toBe(true);
      expect((await see(h.ledger, job.jobId)).errorMessage).toBe(CLEANED);
    });

    check(`${event}: a long message is cut, between characters, and says so`, async (h) => {
      for (const shift of ["", "x"]) {
        const { job } = await jobIn(h.ledger, "running", { maxAttempts: 2 });
        const message = `Error: ${shift}${"👍".repeat(MAX_ERROR_CHARS)}`;
        expect(await settleOne(h.ledger, claimOf(job), end(message))).toBe(true);
        const kept = present((await see(h.ledger, job.jobId)).errorMessage);
        expect(kept.length).toBeLessThanOrEqual(MAX_ERROR_CHARS);
        expect(kept.endsWith("👍…")).toBe(true);
        expect(kept.isWellFormed()).toBe(true);
        await h.ledger.cancel([job.jobId]);
      }
    });
  }

  check("an empty message stays one: the job did fail", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    await settleOne(h.ledger, claimOf(job), { event: "fail", errorMessage: "" });
    expect((await see(h.ledger, job.jobId)).errorMessage).toBe("");
  });

  check("one hostile job in a batch harms none of its mates", async (h) => {
    await accept(h.ledger, [newJob(), newJob(), newJob()]);
    const claimed = await h.ledger.claim({
      workerId: "worker-0000000a",
      tasks: ["echo"],
      limit: 3,
    });
    const messages = ["Error: one", HOSTILE, "Error: three"];
    const answers = await h.ledger.settle(
      claimed.map(({ job }, at) => ({
        ...claimOf(job),
        end: { event: "fail", errorMessage: present(messages[at]) },
      })),
    );
    expect(answers).toEqual(["failed", "failed", "failed"]);
    const found = await h.ledger.get(claimed.map(({ job }) => job.jobId));
    expect(found.map((job) => job?.errorMessage)).toEqual(["Error: one", CLEANED, "Error: three"]);
  });

  check("hostile worker and task names match nothing and break nothing", async (h) => {
    const { job } = await jobIn(h.ledger, "running");
    const workerId = HOSTILE;
    expect(await h.ledger.claim({ workerId, tasks: [HOSTILE], limit: 1 })).toEqual([]);
    expect(await settleOne(h.ledger, { ...claimOf(job), workerId }, { event: "stop" })).toBe(false);
    expect(await h.ledger.rescue({ ...PATIENT, goneWorkerIds: [HOSTILE] })).toEqual([]);
    expect(await h.ledger.list({ task: HOSTILE, limit: 1 })).toEqual({ jobs: [] });
    expect(await see(h.ledger, job.jobId)).toEqual(job);
  });
}
