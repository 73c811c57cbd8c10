/** What a cancel is answered with, of a job as of a plan's phase. */
import type { FastifyReply } from "fastify";
import { formatJobId } from "../../job/id.js";
import type { CancelOutcome } from "../../ledger/ledger.js";
import { alreadyFinished } from "../job-problems.js";
import type { Replies } from "../reply.js";
import { STATES } from "../wire.js";

export function answerCancel(
  replies: Replies,
  reply: FastifyReply,
  { kind, job }: Exclude<CancelOutcome, { readonly kind: "unknown" }>,
): void {
  if (kind === "terminal") {
    replies.refuse(reply, alreadyFinished(job));
    return;
  }
  const body = `{"job_id":"${formatJobId(job.jobId)}","state":"${STATES[job.status]}"}`;
  replies.answer(reply, kind === "cancelled" ? 200 : 202, body);
}
