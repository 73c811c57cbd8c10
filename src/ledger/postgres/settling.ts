/** Settling: one row per job, ascending by id, which is the order of the locks. */
import { cleanText, MAX_ERROR_CHARS } from "../../job/limits.js";
import { TRANSITIONS, type Status } from "../../job/state.js";
import { attemptMessage } from "../../job/transition.js";
import type { Settlement } from "../ledger.js";
import { textOrNull, toStatus } from "../sql/rows.js";
import { float8Array, int4Array, textArray, unlessAll } from "./arrays.js";
import type { Means } from "./changes.js";
import { number, storableAgeMs, type Row } from "./rows.js";

interface Placed {
  readonly settlement: Settlement;
  /** Where it stands in the call. */
  readonly place: number;
}

export async function settle(
  { run, changes }: Means,
  settlements: readonly Settlement[],
): Promise<(Status | null)[]> {
  const statuses = settlements.map((): Status | null => null);
  for (const round of roundsOf(settlements)) {
    const jobIds = round.map(({ settlement }) => settlement.jobId);
    const telling = changes.tellingOf(jobIds, round.some(goesBack));
    const [row] = await run("settle", settleValues(round, telling));
    const changed: string[] = [];
    let work = false;
    for (const [at, status] of statusesOf(round, row).entries()) {
      const placed = round[at];
      if (status === null || placed === undefined) continue;
      statuses[placed.place] = status;
      changed.push(placed.settlement.jobId);
      work ||= status === "queued";
    }
    changes.made(changed, work);
  }
  return statuses;
}

/**
 * What each of a round has become. @param row how many happened, and, where not all of them led where
 * their event leads, a JSON object of the statuses by id.
 */
function statusesOf(round: readonly Placed[], row: Row | undefined): (Status | null)[] {
  if (number(row?.[0]) === 0) return round.map(() => null);
  const some = textOrNull(row?.[1] ?? null);
  if (some === null) return round.map(({ settlement }) => TRANSITIONS[settlement.end.event].to);
  const byId = new Map(Object.entries(JSON.parse(some) as Record<string, string>));
  return round.map(({ settlement }) => {
    const status = byId.get(settlement.jobId);
    return status === undefined ? null : toStatus(status);
  });
}

/**
 * Rounds in which no job occurs twice: of several ends of one job the first comes first, and the
 * statement need not choose.
 */
function roundsOf(settlements: readonly Settlement[]): Placed[][] {
  const rounds: Placed[][] = [];
  const used = new Map<string, number>();
  for (const [place, settlement] of settlements.entries()) {
    const round = used.get(settlement.jobId) ?? 0;
    used.set(settlement.jobId, round + 1);
    (rounds[round] ??= []).push({ settlement, place });
  }
  for (const round of rounds)
    round.sort((a, b) => (a.settlement.jobId < b.settlement.jobId ? -1 : 1));
  return rounds;
}

function settleValues(
  round: readonly Placed[],
  [channel, messages]: readonly [string, readonly string[]],
): unknown[] {
  const of = round.map(({ settlement }) => settlement);
  return [
    textArray(of.map(({ jobId }) => jobId)),
    int4Array(of.map(({ attempt }) => attempt)),
    textArray(of.map(({ workerId }) => workerId)),
    textArray(of.map(({ end }) => end.event)),
    textArray(unlessAll(of.map(resultJson), null)),
    textArray(unlessAll(of.map(errorMessage), null)),
    float8Array(unlessAll(of.map(msOf), null)),
    round.length,
    channel,
    textArray(messages),
    textArray(unlessAll(of.map(keptMessage), null)),
  ];
}

function goesBack({ settlement }: Placed): boolean {
  return settlement.end.event === "retry" || settlement.end.event === "release";
}

function resultJson({ end }: Settlement): string | null {
  return end.event === "succeed" ? end.resultJson : null;
}

function errorMessage({ end }: Pick<Settlement, "end">): string | null {
  return "errorMessage" in end ? cleanText(end.errorMessage, MAX_ERROR_CHARS) : null;
}

/** Where it is not the message itself. */
function keptMessage({ end }: Settlement): string | null {
  if (end.event !== "retry") return null;
  const kept = attemptMessage(end.errorMessage);
  return kept === errorMessage({ end }) ? null : kept;
}

/** A retry's pause; when a release's claim was made. */
function msOf({ end }: Settlement): number | null {
  if (end.event === "release") return end.startedAtMs;
  return end.event === "retry" ? storableAgeMs(Math.max(0, end.delayMs)) : null;
}
