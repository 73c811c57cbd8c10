/**
 * What a claim takes: the due jobs of its tasks by priority, due time and id, over all tasks. The
 * index has that order within one task only, so the tasks that share the highest priority are merged:
 * each shows its first few; what certainly comes before everything not shown is taken, and so on until
 * enough is taken or nothing is due.
 */
import type { Answers, Cell, OperationOf } from "./protocol.js";
import type { Statements } from "./statements.js";
import type { Transaction } from "./transaction.js";
import { byPlace, due, nextPriority, waitingGroups, type Group, type Place } from "./waiting.js";

type Claim = OperationOf<"claim">;

/** One claim takes no more than this, so that one transaction stays short. */
const LARGEST_CLAIM = 10_000;

/** Whether a claim would find anything; a look that takes no lock. */
export function hasDue(run: Statements, { tasks, limit }: Claim, now: string): boolean {
  if (!(limit > 0)) return false;
  for (const group of waitingGroups(run, new Set(tasks)))
    if (due(run, group, now, 1).length > 0) return true;
  return false;
}

export function claim(tx: Transaction, { workerId, tasks, limit }: Claim): Answers["claim"] {
  const cells: Cell[] = [];
  let taken = 0;
  const size = limit > 0 ? Math.min(Math.floor(limit), LARGEST_CLAIM) : 0;
  const heads = new Map<string, number>();
  for (const task of new Set(tasks)) advance(tx, heads, task, Infinity);
  while (taken < size && heads.size > 0) {
    const priority = Math.max(...heads.values());
    const level: Group[] = [];
    for (const [task, head] of heads) if (head === priority) level.push({ task, priority });
    const room = size - taken;
    const [only] = level;
    taken +=
      level.length === 1 && only !== undefined
        ? take(tx, heads, workerId, only, room, cells)
        : takeMerged(tx, heads, workerId, level, room, cells);
  }
  if (taken > 0) tx.count({ queued: -taken, running: taken });
  return cells;
}

/**
 * Takes up to `count` of one group; when it had fewer, its task goes on to its next priority.
 * @returns how many; they are put to `cells`.
 */
function take(
  tx: Transaction,
  heads: Map<string, number>,
  workerId: string,
  { task, priority }: Group,
  count: number,
  cells: Cell[],
): number {
  const { now } = tx;
  const rows = tx.run.claim.all(workerId, now, now, task, priority, now, count);
  for (const row of rows) cells.push(...row);
  if (rows.length < count) advance(tx, heads, task, priority);
  return rows.length;
}

/** One round of the merge; takes at least one job, or ends at least one task's part in it. */
function takeMerged(
  tx: Transaction,
  heads: Map<string, number>,
  workerId: string,
  level: readonly Group[],
  room: number,
  cells: Cell[],
): number {
  const share = Math.ceil(room / level.length) + 1;
  const shown: { readonly group: Group; readonly place: Place }[] = [];
  let certainUpTo: Place | undefined;
  for (const group of level) {
    const places = due(tx.run, group, tx.now, share);
    for (const place of places) shown.push({ group, place });
    const last = places.at(-1);
    if (last === undefined) advance(tx, heads, group.task, group.priority);
    else if (
      places.length === share &&
      (certainUpTo === undefined || byPlace(last, certainUpTo) < 0)
    )
      certainUpTo = last;
  }
  shown.sort((a, b) => byPlace(a.place, b.place));
  const counts = new Map<Group, number>();
  for (const { group, place } of shown.slice(0, room)) {
    if (certainUpTo !== undefined && byPlace(place, certainUpTo) > 0) break;
    counts.set(group, (counts.get(group) ?? 0) + 1);
  }
  let taken = 0;
  for (const [group, count] of counts) taken += take(tx, heads, workerId, group, count, cells);
  return taken;
}

function advance(tx: Transaction, heads: Map<string, number>, task: string, below: number): void {
  const priority = nextPriority(tx.run, task, below);
  if (priority === null) heads.delete(task);
  else heads.set(task, priority);
}
