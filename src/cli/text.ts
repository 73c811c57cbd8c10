/** How answers look to people: tables, times, sizes of things. Scripts ask for `--json`. */

/** Columns as wide as they need to be, without trailing blanks. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((cells) => cells.map(printable));
  const widths = head.map((_, column) =>
    Math.max(...all.map((cells) => (cells[column] ?? "").length)),
  );
  return all
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

/** `name: value` lines, the values in one column. Null values are left out. */
export function fields(pairs: readonly (readonly [string, string | null])[]): string {
  const shown = pairs.filter(([, value]) => value !== null);
  const width = Math.max(...shown.map(([name]) => name.length)) + 2;
  return shown
    .map(([name, value]) => `${`${name}:`.padEnd(width)}${printable(value ?? "")}`)
    .join("\n");
}

/** Control characters could move the cursor or colour the terminal: jobs carry what strangers sent. */
function printable(text: string): string {
  return text.replaceAll(/[\u0000-\u001f\u007f-\u009f]/g, " ");
}

/** `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 10 min`, `3 d 4 h`. */
export function formatMs(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  const seconds = Math.floor(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1_440)} d ${Math.floor((minutes % 1_440) / 60)} h`;
}

/** `2026-03-01T10:00:00.000Z`; null stays null. */
export function formatTime(timeMs: number | null): string | null {
  return timeMs === null ? null : new Date(timeMs).toISOString();
}

/** At most `length` characters, with an ellipsis where it was cut. */
export function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** JSON text for people: the same value, indented. */
export function indentJson(json: string): string {
  return JSON.stringify(JSON.parse(json), null, 2);
}
