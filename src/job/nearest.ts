/** Finds what someone probably meant to write. */

/** Farther than this is another word, not a slip. */
const FARTHEST = 4;

/** The known word with the fewest edits to `word`, or undefined where none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let fewest = Math.min(FARTHEST, Math.ceil(word.length / 2)) + 1;
  for (const candidate of known) {
    const count = edits(word, candidate);
    if (count < fewest) {
      fewest = count;
      best = candidate;
    }
  }
  return best;
}

/** Levenshtein distance, one row at a time (Wagner and Fischer, 1974). */
function edits(a: string, b: string): number {
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (const [row, letter] of Array.from(a).entries()) {
    const line = [row + 1];
    for (const [column, other] of Array.from(b).entries())
      line.push(
        Math.min(
          (above[column] ?? 0) + (letter === other ? 0 : 1),
          (above[column + 1] ?? 0) + 1,
          (line[column] ?? 0) + 1,
        ),
      );
    above = line;
  }
  return above.at(-1) ?? 0;
}
