/** What a submit is refused with that asks for too much, or whose key belongs to another job. */
import type { Job, NewJob } from "../job/job.js";
import type { SubmitOutcome } from "../ledger/ledger.js";
import { MAX_INPUT_BYTES } from "./accepted-input.js";
import type { Refusal, SubmitRefusal } from "./api.js";

/** Jobs of one `submitMany`: one transaction, which others wait for. */
const MAX_MANY = 10_000;

export type KeyConflict = Extract<SubmitRefusal, { readonly kind: "key_conflict" }>;

/** @param chars of their payloads. */
export function isTooMany(jobs: number, chars: number): boolean {
  return jobs > MAX_MANY || chars > MAX_INPUT_BYTES;
}

export const TOO_MANY = {
  kind: "invalid",
  empty: false,
  issues: [
    {
      path: "",
      message: `too many or too large for one call: at most ${String(MAX_MANY)} jobs, with inputs of 64 MiB in all`,
    },
  ],
} as const satisfies Refusal;

export function beyondBound(asked: number, maxDepth: number): SubmitRefusal {
  const message = `${String(asked)} jobs at once are more than async_max_queue (${String(maxDepth)}) ever admits`;
  return { kind: "invalid", empty: false, issues: [{ path: "", message }] };
}

/** Null unless the job that has the key is one of the same call, which was not recorded either. */
export function conflictWithin(
  jobs: readonly NewJob[],
  outcome: SubmitOutcome,
): SubmitRefusal | null {
  if (outcome.kind !== "conflict") return null;
  if (!jobs.some(({ jobId }) => jobId === outcome.job.jobId)) return null;
  const message = "is given twice in this call, with different inputs";
  return { kind: "invalid", empty: false, issues: [{ path: "idempotencyKey", message }] };
}

export function conflict(asked: NewJob, { jobId }: Job): KeyConflict {
  return { kind: "key_conflict", key: asked.idempotency?.key ?? "", jobId };
}
