/** Runs one operation inside a transaction, and knows which kind of transaction a group needs. */
import { textOrNull } from "../sql/rows.js";
import { claim, hasDue } from "./claiming.js";
import { counts, inspect, list, look, recent } from "./looking.js";
import { cancel, heartbeat, settle } from "./moving.js";
import { executePlan } from "./plan-keeping.js";
import type { Answers, Operation, Verb } from "./protocol.js";
import { toIso } from "./rows.js";
import type { Statements } from "./statements.js";
import { submit } from "./submitting.js";
import { evict, expire, reject, rescue } from "./sweeping.js";
import type { Transaction } from "./transaction.js";

/**
 * `look` only reads. `note` writes what may be lost with the power, since the job is then as it was
 * before and everything goes on from there. `record` writes what someone was told: on disk first.
 */
export type Weight = "look" | "note" | "record";

const WEIGHTS: Readonly<Record<Verb, Weight>> = {
  submit: "record",
  settle: "record",
  cancel: "record",
  expire: "record",
  reject: "record",
  rescue: "record",
  claim: "note",
  heartbeat: "note",
  leave: "note",
  evict: "note",
  get: "look",
  look: "look",
  recent: "look",
  result: "look",
  payload: "look",
  list: "look",
  counts: "look",
  workers: "look",
  inspect: "look",
  usePlan: "record",
  beginRun: "record",
  finishRun: "record",
  writeStep: "note",
  // One that comes back with the power says nothing that is not so.
  dropRun: "note",
  findPlans: "look",
  listPlans: "look",
  planRun: "look",
  planRuns: "look",
  planPatch: "look",
};

/** What the operation would do now; a claim that would find nothing is a look, and takes no lock. */
export function weigh(operation: Operation, run: Statements, nowMs: number): Weight {
  if (operation.verb !== "claim") return WEIGHTS[operation.verb];
  return hasDue(run, operation, toIso(nowMs)) ? WEIGHTS.claim : "look";
}

/** @param weight of the transaction: in a `look` nothing is written, and a claim finds nothing. */
export function execute(tx: Transaction, operation: Operation, weight: Weight): Answers[Verb] {
  const { run } = tx;
  switch (operation.verb) {
    case "submit":
      return submit(tx, operation);
    case "claim":
      return weight === "look" ? [] : claim(tx, operation);
    case "settle":
      return settle(tx, operation);
    case "heartbeat":
      return heartbeat(tx, operation);
    case "leave":
      run.leave.run(operation.workerId);
      return null;
    case "cancel":
      return cancel(tx, operation.jobIds);
    case "get":
      return operation.jobIds.map((jobId) => run.job.get(jobId) ?? null);
    case "look":
      return look(tx, operation.jobIds);
    case "recent":
      return recent(tx, operation.limit);
    case "result":
      return run.result.get(operation.jobId) ?? null;
    case "payload":
      return textOrNull(run.payload.get(operation.jobId)?.[0] ?? null);
    case "list":
      return list(tx, operation);
    case "counts":
      return counts(tx);
    case "workers":
      return run.workers.all();
    case "inspect":
      return inspect(tx, operation);
    case "expire":
      return expire(tx, operation);
    case "reject":
      return reject(tx, operation);
    case "rescue":
      return rescue(tx, operation);
    case "evict":
      return evict(tx, operation);
    case "usePlan":
    case "findPlans":
    case "listPlans":
    case "beginRun":
    case "dropRun":
    case "writeStep":
    case "finishRun":
    case "planRun":
    case "planRuns":
    case "planPatch":
      return executePlan(tx, operation);
    default:
      return operation satisfies never;
  }
}
