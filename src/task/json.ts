/**
 * Strict JSON: what a handler returns is recorded as it is, or refused by name. `JSON.stringify`
 * alone turns NaN into null, a Map into {} and a BigInt into a crash. What does change, by rule:
 * - a Date becomes its ISO text, and an object with `toJSON` what that returns;
 * - `undefined` is null at the top and in arrays; an object's property that is undefined is left out;
 * - -0 becomes 0, and keys that are symbols or not enumerable are left out.
 * Lone surrogates and NUL leave as escapes (`\ud800`, `\u0000`), which every ledger stores.
 *
 * The walk is bounded in depth, which also ends circles, and in size: a value whose parts are shared
 * so often that its text would pass the limit is refused before that text is made.
 */

/** Deeper than any real document, and within what common JSON parsers take. */
export const MAX_JSON_DEPTH = 500;

/** Keys in a message are cut to this: they come from data. */
const MAX_KEY_CHARS = 60;

export class ResultNotSerializable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ResultNotSerializable";
  }
}

/**
 * @param root how messages name the value: `result.words.0 is a BigInt`.
 * @returns JSON text of at most `maxBytes` in UTF-8.
 * @throws ResultNotSerializable naming the path.
 */
export function encodeJson(value: unknown, root: string, maxBytes: number): string {
  const walk: Walk = { root, path: [], ancestors: [], maxBytes, leastBytes: 0 };
  try {
    const plain = isJson(value, maxBytes) ? value : normalize(value, walk);
    const text = JSON.stringify(plain ?? null);
    const bytes = Buffer.byteLength(text);
    if (bytes <= maxBytes) return text;
  } catch (error) {
    if (error instanceof ResultNotSerializable) throw error;
    throw new ResultNotSerializable(
      `${where(walk)} can't be read (a getter or toJSON of it threw)`,
    );
  }
  throw tooLarge(walk);
}

/**
 * What nearly everyone gives is JSON data already, known by a look that makes nothing. False also for
 * what is too large or can't be read, which `normalize` refuses by name.
 */
function isJson(value: unknown, maxBytes: number): boolean {
  try {
    return leftAfter(value, maxBytes, 0) >= 0;
  } catch {
    return false;
  }
}

/** @returns how many of `left` bytes are left at most once the value is written; below 0: no JSON, or too large. */
function leftAfter(value: unknown, left: number, depth: number): number {
  if (typeof value === "string") return left - value.length - 2;
  if (value === null || typeof value === "boolean" || Number.isFinite(value)) return left - 1;
  if (typeof value !== "object" || depth >= MAX_JSON_DEPTH) return -1;
  let after = left - 1;
  if (Array.isArray(value)) {
    if ("toJSON" in value) return -1;
    // By index, as it is written, whatever its iterator would give.
    for (let index = 0; index < value.length && after >= 0; index += 1)
      after = leftAfter(value[index], after, depth + 1);
    return after;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype || "toJSON" in value) return -1;
  const fields = value as Readonly<Record<string, unknown>>;
  for (const key in fields) {
    if (after < 0) break;
    after = leftAfter(fields[key], after - key.length - 3, depth + 1);
  }
  return after;
}

interface Walk {
  readonly root: string;
  readonly path: string[];
  readonly ancestors: object[];
  readonly maxBytes: number;
  /** What the text so far takes at least. */
  leastBytes: number;
}

/** The value as plain JSON data: itself where nothing in it changes, else a copy. */
function normalize(value: unknown, walk: Walk): unknown {
  walk.leastBytes += typeof value === "string" ? value.length + 2 : 1;
  if (walk.leastBytes > walk.maxBytes) throw tooLarge(walk);
  switch (typeof value) {
    case "string":
    case "boolean":
    case "undefined":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw refused(walk, String(value));
      return value;
    case "bigint":
      throw refused(walk, "a BigInt");
    case "symbol":
    case "function":
      throw refused(walk, `a ${typeof value}`);
    case "object":
      return value === null ? null : normalizeObject(value, walk);
  }
}

function normalizeObject(value: object, walk: Walk): unknown {
  if (walk.path.length >= MAX_JSON_DEPTH) throw tooDeep(walk);
  if (value instanceof Date && Number.isNaN(value.getTime()))
    throw refused(walk, "an invalid Date");
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw refused(walk, `${article(classOf(value))}; encode it, for example as base64`);
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const json = (value as { toJSON(key: string): unknown }).toJSON(walk.path.at(-1) ?? "");
    if (json === value)
      throw refused(walk, `${article(classOf(value))} whose toJSON returns itself`);
    return normalizeChild("toJSON()", value, json, walk);
  }
  if (Array.isArray(value)) return normalizeArray(value, walk);
  if (!isPlain(value)) throw refused(walk, article(classOf(value)));
  return normalizeRecord(value, walk);
}

function normalizeArray(value: readonly unknown[], walk: Walk): unknown {
  let copy: unknown[] | null = null;
  for (let index = 0; index < value.length; index += 1) {
    const before = value[index];
    const after = normalizeChild(String(index), value, before, walk);
    if (after !== before) copy ??= value.slice(0, index);
    copy?.push(after);
  }
  return copy ?? value;
}

function normalizeRecord(value: object, walk: Walk): unknown {
  let copy: Map<string, unknown> | null = null;
  const entries = Object.entries(value) as [string, unknown][];
  let position = 0;
  for (const [key, before] of entries) {
    walk.leastBytes += key.length + 3;
    const after = normalizeChild(key, value, before, walk);
    if (after !== before) copy ??= new Map(entries.slice(0, position));
    copy?.set(key, after);
    position += 1;
  }
  return copy === null ? value : Object.fromEntries(copy);
}

function normalizeChild(key: string, parent: object, child: unknown, walk: Walk): unknown {
  walk.path.push(key);
  walk.ancestors.push(parent);
  const after = normalize(child, walk);
  walk.path.pop();
  walk.ancestors.pop();
  return after;
}

/** An object literal of any realm, or one without a prototype. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  return (
    typeof prototype === "object" &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, "hasOwnProperty")
  );
}

function classOf(value: object): string {
  try {
    const made: unknown = value.constructor;
    if (typeof made === "function" && made.name !== "") return made.name.slice(0, MAX_KEY_CHARS);
  } catch {
    // A proxy or a getter that throws: its class stays unknown.
  }
  return "object of an unnamed class";
}

function article(name: string): string {
  return `${/^[aeiou]/i.test(name) ? "an" : "a"} ${name}${name === "Promise" ? " (await it)" : ""}`;
}

function where(walk: Walk): string {
  const shown = walk.path.length > 12 ? [...walk.path.slice(0, 12), "…"] : walk.path;
  return [walk.root, ...shown.map((key) => key.slice(0, MAX_KEY_CHARS))].join(".");
}

function refused(walk: Walk, what: string): ResultNotSerializable {
  return new ResultNotSerializable(`${where(walk)} is ${what}`);
}

/** Too deep, or a circle: then some ancestor comes twice, and the path to its second visit closes it. */
function tooDeep(walk: Walk): ResultNotSerializable {
  const seen = new Set<object>();
  for (const [depth, ancestor] of walk.ancestors.entries()) {
    if (seen.has(ancestor)) {
      walk.path.length = depth;
      return refused(walk, "circular");
    }
    seen.add(ancestor);
  }
  return new ResultNotSerializable(
    `${walk.root} is nested deeper than ${String(MAX_JSON_DEPTH)} levels`,
  );
}

function tooLarge(walk: Walk): ResultNotSerializable {
  return new ResultNotSerializable(
    `${walk.root} is larger than ${String(walk.maxBytes)} bytes; store it elsewhere and return where`,
  );
}
