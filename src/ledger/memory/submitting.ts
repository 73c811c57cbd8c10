/** Submitting: the check against the bound and the keys, and the records, in one step. */
import type { NewJob } from "../../job/job.js";
import { fingerprintOf, newlyQueued } from "../../job/transition.js";
import { roomBelow, verdictsOn, type Verdict } from "../admitting.js";
import type { AdmissionBound, SubmitOutcome } from "../ledger.js";
import type { Book, Turn } from "./book.js";
import type { Entry } from "./entry.js";

export function submit(
  book: Book,
  jobs: readonly NewJob[],
  { maxDepth, whole = false }: AdmissionBound,
  turn: Turn,
): SubmitOutcome[] {
  const asking = jobs.map((job): Entry => {
    const { payloadJson } = job;
    const fingerprint = fingerprintOf(job);
    const record = newlyQueued(job, turn.nowMs);
    return { job: record, payloadJson, resultJson: null, fingerprint, evicted: false };
  });
  const room = roomBelow(maxDepth, book.depth);
  return whole || asking.some(({ job }) => job.idempotencyKey !== null)
    ? submitEach(book, asking, room, whole, turn)
    : submitPlain(book, asking, room, turn);
}

/** What nearly all submits are: no keys, each for itself. */
function submitPlain(
  book: Book,
  asking: readonly Entry[],
  room: number,
  turn: Turn,
): SubmitOutcome[] {
  const ids = new Set<string>();
  for (const { job } of asking) {
    if (ids.has(job.jobId) || book.jobs.get(job.jobId) !== undefined) throw usedTwice(job.jobId);
    ids.add(job.jobId);
  }
  let left = room;
  return asking.map((entry) => {
    left -= 1;
    if (left < 0) return { kind: "full", depth: book.depth };
    book.admit(entry, turn);
    return { kind: "accepted", job: entry.job };
  });
}

function submitEach(
  book: Book,
  asking: readonly Entry[],
  room: number,
  whole: boolean,
  turn: Turn,
): SubmitOutcome[] {
  const asked = asking.map(({ job, fingerprint }) => ({ key: job.idempotencyKey, fingerprint }));
  const verdicts = verdictsOn(asked, room, whole, (key) => {
    const found = book.jobs.withKey(key);
    return found === undefined ? undefined : { found, fingerprint: found.fingerprint };
  });
  refuseUsedIds(book, asking, verdicts);
  for (const [place, entry] of asking.entries())
    if (verdicts[place]?.kind === "admitted") book.admit(entry, turn);
  const { depth } = book;
  return asking.map((entry, place) => {
    const verdict = verdicts[place];
    if (verdict === undefined || verdict.kind === "full") return { kind: "full", depth };
    if (verdict.kind === "admitted") return { kind: "accepted", job: entry.job };
    const other = "mate" in verdict ? asking[verdict.mate] : verdict.found;
    return { kind: verdict.kind, job: (other ?? entry).job };
  });
}

/** An id that is there already harms nobody where nothing would be recorded. */
function refuseUsedIds(
  book: Book,
  asking: readonly Entry[],
  verdicts: readonly Verdict<Entry>[],
): void {
  const seen = new Set<string>();
  for (const [place, { job }] of asking.entries()) {
    const { jobId } = job;
    const kind = verdicts[place]?.kind;
    const wouldStand = kind === "admitted" || kind === "full";
    if (seen.has(jobId) || (wouldStand && book.jobs.get(jobId) !== undefined))
      throw usedTwice(jobId);
    seen.add(jobId);
  }
}

function usedTwice(jobId: string): Error {
  return new Error(`job id ${jobId} is used twice: give every job an id of its own`);
}
