/**
 * Text as a terminal shows it. Jobs carry what strangers sent, so whatever is printed goes through
 * `clean` first: a control character could move the cursor, write over what stands there, or worse.
 */
import stringWidth from "string-width";
import { stripVTControlCharacters } from "node:util";

/** C0, DEL, C1, and the separators of lines and paragraphs. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g;
/** Marks that turn the direction of what follows, so that it reads as something else. */
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const UNSAFE_IN_JSON = new RegExp(
  `[\\u007f-\\u009f\\u2028\\u2029]|${DIRECTION.source}`,
  DIRECTION.flags,
);

const graphemes = new Intl.Segmenter("en", { granularity: "grapheme" });

/** One line without anything that steers a terminal. */
export function clean(text: string): string {
  return stripVTControlCharacters(text).replaceAll(CONTROL, " ").replaceAll(DIRECTION, "");
}

/** The same JSON value; what could steer a terminal can only stand in its strings, and is escaped. */
export function safeJson(json: string): string {
  return json.replaceAll(
    UNSAFE_IN_JSON,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** JSON text for people: the same value, indented. */
export function indentJson(json: string): string {
  return safeJson(JSON.stringify(JSON.parse(json), null, 2));
}

/** How many columns of a terminal the text takes: two for East Asian wide characters and emoji. */
export function widthOf(text: string): number {
  return stringWidth(text);
}

/** At most `width` (>= 1) columns, with an ellipsis where it was cut. */
export function clip(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  // A colour cut in half would be worse than none.
  const uncoloured = stripVTControlCharacters(text);
  let cut = "";
  let taken = 0;
  for (const { segment } of graphemes.segment(uncoloured)) {
    taken += widthOf(segment);
    if (taken > width - 1) break;
    cut += segment;
  }
  return `${cut}…`;
}

/** With blanks at its end up to `width` columns. */
export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
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
