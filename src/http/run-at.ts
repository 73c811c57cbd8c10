/** A time as clients write it: RFC 3339, with a zone, since a time without one is not the same time everywhere. */

const RFC_3339 =
  /^(\d{4}-\d\d-(\d\d))[Tt ]([01]\d|2[0-3]):([0-5]\d):([0-5]\d|60)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/;

/** @returns ms since the Unix epoch; null for text that is no such time. A leap second is the second after it. */
export function parseTime(text: string): number | null {
  const match = RFC_3339.exec(text);
  if (match === null) return null;
  const [, date = "", day, hour, minute, second, fraction = 0, sign, hours = 0, minutes = 0] =
    match;
  const dayMs = Date.parse(`${date}T00:00:00Z`);
  // February 30 would be March 2.
  if (Number.isNaN(dayMs) || new Date(dayMs).getUTCDate() !== Number(day)) return null;
  const withinDayS = (Number(hour) * 60 + Number(minute)) * 60 + Number(second);
  const offsetMinutes = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const localMs = dayMs + withinDayS * 1_000 + Math.floor(Number(fraction) * 1_000);
  return localMs - offsetMinutes * 60_000;
}
