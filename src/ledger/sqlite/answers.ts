/** From what the database thread answers to what the contract promises. */
import type { Job } from "../../job/job.js";
import type { Counts, LedgerReport, SubmitOutcome } from "../ledger.js";
import type { Answers } from "./protocol.js";
import { fromIso, toJob, toWorker } from "./rows.js";

export function toSubmitOutcomes(
  records: readonly Job[],
  { admitted, depth, others }: NonNullable<Answers["submit"]>,
): SubmitOutcome[] {
  const byPlace = new Map(others.map(([place, kind, of]) => [place, { kind, of }]));
  let left = admitted;
  return records.map((job, place) => {
    const other = byPlace.get(place);
    if (other !== undefined) {
      const { kind, of } = other;
      return { kind, job: typeof of === "number" ? (records[of] ?? job) : toJob(of) };
    }
    left -= 1;
    return left >= 0 ? { kind: "accepted", job } : { kind: "full", depth };
  });
}

export function toCounts(
  { queued, running, terminal, oldestRunAt }: Answers["counts"],
  nowMs: number,
): Counts {
  const waitedMs = oldestRunAt === null ? -1 : nowMs - fromIso(oldestRunAt);
  return {
    queued,
    running,
    total: queued + running + terminal,
    oldestQueuedMs: waitedMs < 0 ? null : waitedMs,
  };
}

export function toReport(answer: Answers["inspect"], nowMs: number): LedgerReport {
  return {
    nowMs,
    software: `SQLite ${answer.version}`,
    schemaVersion: answer.schemaVersion,
    counts: toCounts(answer.counts, nowMs),
    workers: answer.workers.map(toWorker),
    oldestQueued: answer.oldest === null ? null : toJob(answer.oldest),
    stuck: answer.stuck.map(toJob),
    waiting: answer.waiting.map(([task, queued]) => ({ task, queued })),
  };
}
