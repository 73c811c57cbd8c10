/** Points in time as people write them (RFC 3339, 5.6): a date, a time, and a zone that is never guessed. */

const INSTANT =
  /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** @returns ms since the epoch, or null for text that is no such time. */
export function parseInstant(text: string): number | null {
  const found = INSTANT.exec(text.trim());
  if (found === null) return null;
  const ms = Date.parse(text.trim().toUpperCase().replace(" ", "T"));
  if (Number.isNaN(ms)) return null;
  // `Date.parse` takes February 30th for March 2nd.
  const [, year, month, day] = found;
  const days = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  return Number(day) <= days ? ms : null;
}
