/** Settling: one row per job, ascending by id, which is the order of the locks. */
import { cleanText, MAX_ERROR_CHARS } from "../../job/limits.js";
import type { Settlement } from "../ledger.js";
import { float8Array, int4Array, textArray, unlessAll } from "./arrays.js";
import type { Means } from "./changes.js";
import { number, storableAgeMs, textOrNull, type Row } from "./rows.js";

interface Placed {
  readonly settlement: Settlement;
  /** Where it stands in the call. */
  readonly place: number;
}

export async function settle(
  { run, changes }: Means,
  settlements: readonly Settlement[],
): Promise<boolean[]> {
  const happened = settlements.map(() => false);
  for (const round of roundsOf(settlements)) {
    const jobIds = round.map(({ settlement }) => settlement.jobId);
    const telling = changes.tellingOf(jobIds, round.some(goesBack));
    const [row] = await run("settle", settleValues(round, telling));
    const settled = whatHappened(round, row);
    for (const { place } of settled) happened[place] = true;
    changes.made(
      settled.map(({ settlement }) => settlement.jobId),
      settled.some(goesBack),
    );
  }
  return happened;
}

/** @param row how many happened, and, where it was not all of them, a JSON array of their ids. */
function whatHappened(round: readonly Placed[], row: Row | undefined): readonly Placed[] {
  if (number(row?.[0]) === 0) return [];
  const some = textOrNull(row?.[1] ?? null);
  if (some === null) return round;
  const ids: unknown = JSON.parse(some);
  const found = new Set<unknown>(Array.isArray(ids) ? ids : []);
  return round.filter(({ settlement }) => found.has(settlement.jobId));
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
    float8Array(unlessAll(of.map(delayMs), null)),
    round.length,
    channel,
    textArray(messages),
  ];
}

function goesBack({ settlement }: Placed): boolean {
  return settlement.end.event === "retry" || settlement.end.event === "release";
}

function resultJson({ end }: Settlement): string | null {
  return end.event === "succeed" ? end.resultJson : null;
}

function errorMessage({ end }: Settlement): string | null {
  return "errorMessage" in end ? cleanText(end.errorMessage, MAX_ERROR_CHARS) : null;
}

function delayMs({ end }: Settlement): number | null {
  return end.event === "retry" ? storableAgeMs(Math.max(0, end.delayMs)) : null;
}
