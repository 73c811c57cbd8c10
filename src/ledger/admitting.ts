/**
 * What becomes of the jobs of one submit, as one pure function, so that all ledgers say the same of
 * keys that are known, keys that are named twice in one call, and calls that are whole or nothing.
 * It records nothing: the ledger does, in the same step in which it has looked.
 */

/** What is asked for one job. */
export interface Asked {
  readonly key: string | null;
  readonly fingerprint: string | null;
}

/** A record that has a key already. */
export interface Known<Found> {
  readonly found: Found;
  readonly fingerprint: string | null;
}

export type Verdict<Found> =
  | { readonly kind: "admitted" }
  | { readonly kind: "full" }
  /** Of a record that was there before. */
  | { readonly kind: "repeated" | "conflict"; readonly found: Found }
  /** Of a job of the same call, by its place. */
  | { readonly kind: "repeated" | "conflict"; readonly mate: number };

const ADMITTED = { kind: "admitted" } as const;
const FULL = { kind: "full" } as const;

/** How many jobs there is room for. @param maxDepth may be any number. */
export function roomBelow(maxDepth: number, depth: number): number {
  return depth < maxDepth ? Math.ceil(maxDepth - depth) : 0;
}

/**
 * @param room how many new jobs there is room for.
 * @param whole all new ones or none, and none where one conflicts.
 * @param find the record that has the key.
 * @returns one verdict for each, in order.
 */
export function verdictsOn<Found>(
  asked: readonly Asked[],
  room: number,
  whole: boolean,
  find: (key: string) => Known<Found> | undefined,
): Verdict<Found>[] {
  const firstOf = new Map<string, number>();
  let conflicts = 0;
  const verdicts = asked.map(({ key, fingerprint }, place): Verdict<Found> | null => {
    if (key === null) return null;
    const known = find(key);
    const mate = firstOf.get(key);
    if (known === undefined && mate === undefined) {
      firstOf.set(key, place);
      return null;
    }
    const same = fingerprint === (known ?? asked[mate ?? place])?.fingerprint;
    if (!same) conflicts += 1;
    const kind = same ? "repeated" : "conflict";
    return known === undefined ? { kind, mate: mate ?? place } : { kind, found: known.found };
  });
  const fresh = verdicts.filter((verdict) => verdict === null).length;
  let left = whole && (conflicts > 0 || fresh > room) ? 0 : room;
  const decided = verdicts.map((verdict) => {
    if (verdict !== null) return verdict;
    left -= 1;
    return left >= 0 ? ADMITTED : FULL;
  });
  // What was not recorded has no key: its mates found no room either.
  return decided.map((verdict) => {
    if (!("mate" in verdict) || decided[verdict.mate]?.kind !== "full") return verdict;
    return whole && verdict.kind === "conflict" ? verdict : FULL;
  });
}
