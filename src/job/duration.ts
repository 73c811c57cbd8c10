/** Durations as people write them: a number in a unit that the setting names, or text with its own. */

const MS_PER = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

export type DurationUnit = keyof typeof MS_PER;

/** `30s`, `1.5h`, `250 ms`, or bare digits in the setting's own unit. */
const DURATION = /^(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|h|d)?$/;

/**
 * @param value a number, or text such as `"5m"`; a number and bare digits count in `unit`.
 * @returns whole milliseconds, or undefined where `value` is no duration: negative, not finite, of
 *   an unknown unit, or beyond what a number holds exactly. What is more than nothing never becomes
 *   0, which often means "unlimited".
 */
export function parseDuration(value: string | number, unit: DurationUnit): number | undefined {
  if (typeof value === "number") return wholeMs(value, unit);
  const [, digits, ownUnit] = DURATION.exec(value.trim().toLowerCase()) ?? [];
  if (digits === undefined) return undefined;
  return wholeMs(Number(digits), isUnit(ownUnit) ? ownUnit : unit);
}

function isUnit(text: string | undefined): text is DurationUnit {
  return text !== undefined && Object.hasOwn(MS_PER, text);
}

function wholeMs(count: number, unit: DurationUnit): number | undefined {
  const ms = count * MS_PER[unit];
  if (!(ms >= 0) || ms > Number.MAX_SAFE_INTEGER) return undefined;
  return ms === 0 ? 0 : Math.max(1, Math.round(ms));
}
