/**
 * Finds the jobs that have ended since it was last asked, for a price that follows their number, not
 * that of the jobs.
 *
 * Ends are in an index by their times, but these are no order to rely on: each is what a process's
 * clock said before it waited for the write lock, and clocks can be set. SQLite has one writer at a
 * time, though, so a count of all ends that changes in the same transactions tells exactly how many
 * there are to be found. The index is read from its newest entry down, past those that are known,
 * until as many others were met. All are known above a floor; where that is reached first (a clock was
 * set back, something was forgotten meanwhile, someone wrote past the ledger), or where fewer ends were
 * counted than are there (a process of an older version ended jobs), the answer is that it can't be
 * told, and what is known is read anew.
 */
import { text } from "../sql/rows.js";
import { integer } from "./rows.js";
import type { Statements } from "./statements.js";

/** Ends that are recorded late, after so many that came later, are still met. A few hundred kilobytes. */
const KNOWN = 4_096;

export class RecentEnds {
  readonly #most: number;
  /** Of the count; null: nothing is known. */
  #ended: number | null = null;
  /** How many have ended and are not there any more. */
  #gone = 0;
  /** Times by rowid: all ends that are later than the floor. */
  readonly #known = new Map<number, string>();
  #floor = "";

  /** @param most how many ends it knows at least; up to twice as many. */
  constructor(most = KNOWN) {
    this.#most = most;
  }

  /**
   * @param counts as this transaction sees them.
   * @returns their rowids, and whether ends were forgotten; null when it can't be told, or they would be more than `limit`.
   */
  since(
    run: Statements,
    { ended, terminal }: { readonly ended: number; readonly terminal: number },
    limit: number,
  ): { readonly rowids: number[]; readonly forgotten: boolean } | null {
    const count = ended - (this.#ended ?? Infinity);
    const gone = ended - terminal;
    const canTell = count >= 0 && count <= limit && gone >= this.#gone;
    const rowids = canTell ? this.#find(run, count) : null;
    if (rowids === null) this.#readAnew(run);
    const forgotten = gone !== this.#gone;
    this.#ended = ended;
    this.#gone = gone;
    return rowids && { rowids, forgotten };
  }

  /** What was told last may not have happened, or not have arrived. */
  forget(): void {
    this.#ended = null;
  }

  #find(run: Statements, count: number): number[] | null {
    const found: number[] = [];
    if (count > 0)
      for (const row of run.endsAfter.iterate(this.#floor, this.#most * 2 + count)) {
        const rowid = integer(row[0]);
        const at = text(row[1]);
        if (this.#known.get(rowid) === at) continue;
        this.#known.set(rowid, at);
        found.push(rowid);
        if (found.length === count) break;
      }
    if (found.length < count) return null;
    if (this.#known.size > this.#most * 2) this.#raiseFloor();
    return found;
  }

  #readAnew(run: Statements): void {
    this.#known.clear();
    this.#floor = "";
    const rows = run.endsAfter.all("", this.#most + 1);
    if (rows.length > this.#most) this.#floor = text(rows.at(-1)?.[1]);
    for (const row of rows) {
      const at = text(row[1]);
      if (at > this.#floor) this.#known.set(integer(row[0]), at);
    }
  }

  #raiseFloor(): void {
    const times = [...this.#known.values()].sort();
    this.#floor = times[times.length - this.#most] ?? "";
    for (const [rowid, at] of this.#known) if (at <= this.#floor) this.#known.delete(rowid);
  }
}
