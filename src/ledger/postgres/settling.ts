/** Settling: one row per job, ascending by id, which is the order of the locks. */
import { cleanText, MAX_ERROR_CHARS } from "../../job/limits.js";
import { TRANSITIONS, type Status } from "../../job/state.js";
import { attemptMessage } from "../../job/transition.js";
import type { Settlement } from "../ledger.js";
import { textOrNull, toStatus } from "../sql/rows.js";
import { float8Array, int4Array, once, textArray, unlessAll } from "./arrays.js";
import type { Means } from "./changes.js";
import { number, storableAgeMs, type Row } from "./rows.js";

export async function settle(
  { run, changes }: Means,
  settlements: readonly Settlement[],
): Promise<(Status | null)[]> {
  const statuses = settlements.map((): Status | null => null);
  for (const places of roundsOf(settlements)) {
    const round = places.map((place) => present(settlements, place));
    const jobIds = round.map(({ jobId }) => jobId);
    const telling = changes.tellingOf(jobIds, round.some(goesBack));
    const [row] = await run("settle", settleValues(round, jobIds, telling));
    const changed: string[] = [];
    let work = false;
    for (const [at, status] of statusesOf(round, row).entries()) {
      if (status === null) continue;
      statuses[present(places, at)] = status;
      changed.push(present(jobIds, at));
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
function statusesOf(round: readonly Settlement[], row: Row | undefined): (Status | null)[] {
  if (number(row?.[0]) === 0) return round.map(() => null);
  const some = textOrNull(row?.[1] ?? null);
  if (some === null) return round.map(({ end }) => TRANSITIONS[end.event].to);
  const byId = new Map(Object.entries(JSON.parse(some) as Record<string, string>));
  return round.map(({ jobId }) => {
    const status = byId.get(jobId);
    return status === undefined ? null : toStatus(status);
  });
}

/**
 * The places of the call in rounds, ascending by id, in which no job occurs twice: of several ends of
 * one job the first comes first, and the statement need not choose.
 */
function roundsOf(settlements: readonly Settlement[]): number[][] {
  const idAt = (place: number): string => present(settlements, place).jobId;
  const order = settlements
    .map((_, place) => place)
    .sort((a, b) => (idAt(a) < idAt(b) ? -1 : idAt(a) === idAt(b) ? 0 : 1));
  const rounds: number[][] = [];
  let before: string | null = null;
  let round = 0;
  for (const place of order) {
    const jobId = idAt(place);
    round = jobId === before ? round + 1 : 0;
    before = jobId;
    (rounds[round] ??= []).push(place);
  }
  return rounds;
}

function present<T>(values: readonly T[], at: number): T {
  const value = values[at];
  if (value === undefined) throw new Error(`there is nothing at ${String(at)} of a settle`);
  return value;
}

function settleValues(
  round: readonly Settlement[],
  jobIds: readonly string[],
  [channel, messages]: readonly [string, readonly string[]],
): unknown[] {
  return [
    textArray(jobIds),
    int4Array(once(round.map(({ attempt }) => attempt))),
    textArray(once(round.map(({ workerId }) => workerId))),
    textArray(once(round.map(({ end }) => end.event))),
    textArray(unlessAll(round, resultJson, null)),
    textArray(unlessAll(round, errorMessage, null)),
    float8Array(unlessAll(round, msOf, null)),
    round.length,
    channel,
    textArray(messages),
    textArray(unlessAll(round, keptMessage, null)),
  ];
}

function goesBack({ end }: Settlement): boolean {
  return end.event === "retry" || end.event === "release";
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
