/**
 * Arrays as PostgreSQL takes them in binary (array_recv in src/backend/utils/adt/arrayfuncs.c): the
 * number of dimensions, whether nulls are among them, the element's type; per dimension its length
 * and lower bound; then each element's length and bytes, or -1 for null. Nothing needs quotes, and
 * large texts are copied once.
 *
 * A column that is the same default for all rows is sent as an empty array, one that is the same for
 * all rows as an array of one: `unnest` fills the shorter ones with null, and the statement puts the
 * default in, or the one.
 */

const TEXT_OID = 25;
const INT4_OID = 23;
const INT8_OID = 20;
const FLOAT8_OID = 701;
const EMPTY_HEADER_BYTES = 12;
const HEADER_BYTES = 20;
const LENGTH_BYTES = 4;
const NULL_LENGTH = -1;
const NUL = "\0";

/** NUL characters, which PostgreSQL can't hold, become U+FFFD; so do lone surrogates, by their encoding. */
export function textArray(texts: readonly (string | null)[]): Buffer {
  let bytes = 0;
  const stored = texts.map((text) => {
    if (text === null) return null;
    const storable = text.includes(NUL) ? text.replaceAll(NUL, "\uFFFD") : text;
    bytes += Buffer.byteLength(storable);
    return storable;
  });
  const buffer = begin(TEXT_OID, stored.length, bytes);
  let at = HEADER_BYTES;
  for (const text of stored) {
    const length = text === null ? 0 : buffer.write(text, at + LENGTH_BYTES);
    buffer.writeInt32BE(text === null ? NULL_LENGTH : length, at);
    at += LENGTH_BYTES + length;
  }
  return buffer;
}

export function int4Array(numbers: readonly (number | null)[]): Buffer {
  return fixedArray(INT4_OID, 4, numbers, (buffer, value, at) => buffer.writeInt32BE(value, at));
}

export function int8Array(numbers: readonly (number | null)[]): Buffer {
  return fixedArray(INT8_OID, 8, numbers, (buffer, value, at) =>
    buffer.writeBigInt64BE(BigInt(Math.round(value)), at),
  );
}

export function float8Array(numbers: readonly (number | null)[]): Buffer {
  return fixedArray(FLOAT8_OID, 8, numbers, (buffer, value, at) => buffer.writeDoubleBE(value, at));
}

/** What each of `items` has, or nothing where all have `fallback`. */
export function unlessAll<Item, Value>(
  items: readonly Item[],
  of: (item: Item) => Value,
  fallback: Value,
): readonly Value[] {
  return items.every((item) => of(item) === fallback) ? [] : items.map(of);
}

/** The values, or the first alone where all of them are like it. */
export function once<T>(values: readonly T[]): readonly T[] {
  const first = values.slice(0, 1);
  return values.every((value) => value === first[0]) ? first : values;
}

function fixedArray(
  oid: number,
  size: number,
  numbers: readonly (number | null)[],
  write: (buffer: Buffer, value: number, at: number) => void,
): Buffer {
  const buffer = begin(oid, numbers.length, numbers.length * size);
  let at = HEADER_BYTES;
  for (const value of numbers) {
    buffer.writeInt32BE(value === null ? NULL_LENGTH : size, at);
    at += LENGTH_BYTES;
    if (value === null) continue;
    write(buffer, value, at);
    at += size;
  }
  return buffer.subarray(0, numbers.length === 0 ? EMPTY_HEADER_BYTES : at);
}

function begin(oid: number, count: number, elementBytes: number): Buffer {
  if (count === 0) {
    const empty = Buffer.alloc(EMPTY_HEADER_BYTES);
    empty.writeInt32BE(oid, 8);
    return empty;
  }
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + count * LENGTH_BYTES + elementBytes);
  buffer.writeInt32BE(1, 0);
  buffer.writeInt32BE(1, 4);
  buffer.writeInt32BE(oid, 8);
  buffer.writeInt32BE(count, 12);
  buffer.writeInt32BE(1, 16);
  return buffer;
}
