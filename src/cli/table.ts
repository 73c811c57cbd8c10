/**
 * Tables and fields. On a terminal a table is never wider than it: the least important columns are
 * cut, then left out. Elsewhere (`| grep`, a file) nothing is cut.
 */
import { plain, type Look, type Paint } from "./look.js";
import { clean, clip, pad, widthOf } from "./text.js";

export interface Column {
  readonly head: string;
  /** Lower ones give way first; the column with the highest stays to the last. */
  readonly importance: number;
  /** Narrower than this it says nothing, and is left out instead; left out: it is not cut. */
  readonly least?: number;
  readonly paint?: (cell: string, look: Look) => Paint;
}

const GAP = "  ";

/** @param look how it may look; `columns` null: as wide as it needs to be. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  look: Look,
): string {
  const cells = rows.map((row) => row.map(clean));
  const widths = fit(
    columns.map((column, at) => {
      const needed = Math.max(widthOf(column.head), ...cells.map((row) => widthOf(row[at] ?? "")));
      return { column, needed };
    }),
    look.columns ?? Infinity,
  );
  const line = (texts: readonly string[], paintOf: (at: number) => Paint): string => {
    const shown: string[] = [];
    const last = widths.findLastIndex((width) => width > 0);
    for (const [at, width] of widths.entries()) {
      if (width === 0) continue;
      const text = clip(texts[at] ?? "", width);
      // Blanks are not painted, and none stand at the end of a line.
      const blanks = at === last ? "" : pad(text, width).slice(text.length);
      shown.push(paintOf(at)(text) + blanks);
    }
    return shown.join(GAP).trimEnd();
  };
  return [
    line(
      columns.map(({ head }) => head),
      () => plain,
    ),
    ...cells.map((row) => line(row, (at) => columns[at]?.paint?.(row[at] ?? "", look) ?? plain)),
  ].join("\n");
}

interface Wanted {
  readonly column: Column;
  readonly needed: number;
}

/** The width of each column; 0: it is left out. */
function fit(wanted: readonly Wanted[], room: number): number[] {
  const order = [...wanted.keys()].sort(
    (a, b) => (wanted[a]?.column.importance ?? 0) - (wanted[b]?.column.importance ?? 0),
  );
  const least = wanted.map(({ column, needed }) => Math.min(column.least ?? needed, needed));
  const widths = wanted.map(({ needed }) => needed);
  const kept = (): number[] => order.filter((at) => (widths[at] ?? 0) > 0);
  const total = (of: readonly number[]): number =>
    kept().reduce((sum, at) => sum + (of[at] ?? 0) + GAP.length, -GAP.length);
  for (const at of order) {
    if (total(least) <= room) break;
    if (kept().length > 1) widths[at] = 0;
  }
  for (const at of kept()) {
    const excess = total(widths) - room;
    if (excess <= 0) break;
    const floor = kept().length > 1 ? (least[at] ?? 0) : 1;
    widths[at] = Math.max(floor, (widths[at] ?? 0) - excess);
  }
  return widths;
}

/** `name: value` lines, the values in one column. Null values are left out. */
export function fields(
  pairs: readonly (readonly [name: string, value: string | null, paint?: Paint])[],
): string {
  const shown = pairs.filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length)) + 2;
  return shown
    .map(([name, value, paint = plain]) => `${name}:`.padEnd(width) + paint(clean(value ?? "")))
    .join("\n");
}
