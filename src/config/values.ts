/**
 * Reads one value of a setting from what a flag, a variable or a file says, and writes it for
 * people. Nothing here throws: a value is read, or it is told what was expected instead.
 */
import { parseDuration } from "../job/duration.js";
import type { SettingRow } from "./settings.js";

export type SettingValue = boolean | number | string | null;

export type Reading =
  | { readonly kind: "read"; readonly value: SettingValue }
  | { readonly kind: "wrong"; readonly expected: string };

const BOOLEANS = new Map([
  ...["true", "on", "yes", "1"].map((word) => [word, true] as const),
  ...["false", "off", "no", "0"].map((word) => [word, false] as const),
]);

/** Multiples are binary, as memory is: 1 kb = 1 kib = 1024 bytes. */
const SIZE = /^(\d+(?:\.\d+)?)\s*(b|kb|kib|mb|mib|gb|gib)?$/;
const SIZE_POWER = new Map([
  ["k", 1],
  ["m", 2],
  ["g", 3],
]);

const STORE = /^(memory|sqlite:.+|postgres(ql)?:\/\/.+)$/;

/** @param raw text from a flag or a variable; any JSON value from a file. */
export function readValue(row: SettingRow, raw: unknown): Reading {
  const value = valueOf(row, raw);
  return value === undefined
    ? { kind: "wrong", expected: expectation(row) }
    : { kind: "read", value };
}

function valueOf(row: SettingRow, raw: unknown): SettingValue | undefined {
  switch (row.kind) {
    case "boolean":
      return typeof raw === "boolean" ? raw : BOOLEANS.get(textOf(raw)?.toLowerCase() ?? "");
    case "integer": {
      const count = numberOf(raw);
      return count !== undefined && Number.isInteger(count) && within(row, count)
        ? count
        : undefined;
    }
    case "duration": {
      if (typeof raw !== "number" && typeof raw !== "string") return undefined;
      const ms = parseDuration(raw, row.unit);
      return ms !== undefined && within(row, ms / MS_PER[row.unit]) ? ms : undefined;
    }
    case "bytes": {
      const bytes = typeof raw === "number" ? raw : parseSize(textOf(raw) ?? "");
      return bytes !== undefined && Number.isInteger(bytes) && within(row, bytes)
        ? bytes
        : undefined;
    }
    case "text":
    case "secret": {
      const text = textOf(raw);
      return text === undefined || text === "" || /[\r\n\0]/.test(text) ? undefined : text;
    }
    case "store": {
      const text = textOf(raw);
      return text !== undefined && STORE.test(text) ? text : undefined;
    }
    case "url": {
      const text = textOf(raw);
      return text !== undefined && isServerUrl(text) ? text : undefined;
    }
    case "choice": {
      const text = textOf(raw);
      return text !== undefined && row.choices.includes(text) ? text : undefined;
    }
    default:
      return row satisfies never;
  }
}

const MS_PER = { ms: 1, s: 1_000 } as const;

/** A name or password in it would be refused by every request; the token has a setting of its own. */
function isServerUrl(text: string): boolean {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) return false;
  const { username, password, search, hash } = new URL(text);
  return [username, password, search, hash].every((part) => part === "");
}

function textOf(raw: unknown): string | undefined {
  return typeof raw === "string" ? raw.trim() : undefined;
}

function numberOf(raw: unknown): number | undefined {
  if (typeof raw === "number") return raw;
  return typeof raw === "string" && /^\s*[+-]?\d+\s*$/.test(raw) ? Number(raw) : undefined;
}

function within(
  { min, max }: { readonly min: number; readonly max: number },
  count: number,
): boolean {
  return count >= min && count <= max;
}

/** `"16mb"` to bytes; undefined where it is no size. */
export function parseSize(text: string): number | undefined {
  const [, digits, unit] = SIZE.exec(text.trim().toLowerCase()) ?? [];
  if (digits === undefined) return undefined;
  return Math.round(Number(digits) * 1_024 ** (SIZE_POWER.get(unit?.charAt(0) ?? "") ?? 0));
}

/** What a value must be, in one phrase: `a whole number from 0 to 65535`. */
export function expectation(row: SettingRow): string {
  switch (row.kind) {
    case "boolean":
      return "true or false";
    case "integer":
      return `a whole number from ${row.min} to ${row.max}`;
    case "duration":
      return `a duration from ${row.min} ${row.unit} to ${row.max} ${row.unit}: a number in ${row.unit}, or one with a unit such as "5m"`;
    case "bytes":
      return `a size from ${formatBytes(row.min)} to ${formatBytes(row.max)}: bytes, or a number with a unit such as "16mb"`;
    case "text":
    case "secret":
      return "one line of text";
    case "store":
      return "memory, sqlite:PATH or postgres://USER@HOST/DATABASE";
    case "url":
      return "http://HOST:PORT or https://HOST";
    case "choice":
      return `one of ${row.choices.join(", ")}`;
    default:
      return row satisfies never;
  }
}

/** A setting's value in its row's unit, fit to be shown: secrets and passwords are masked. */
export function formatValue(row: SettingRow, value: SettingValue): string {
  if (value === null) return "none";
  if (row.kind === "duration" && typeof value === "number")
    return `${value / MS_PER[row.unit]} ${row.unit}`;
  if (row.kind === "bytes" && typeof value === "number") return formatBytes(value);
  return String(maskValue(row, value));
}

/** The value as it may be printed: a secret becomes `***`, and so does a password within a URL. */
export function maskValue(row: SettingRow, value: SettingValue): SettingValue {
  if (typeof value !== "string") return value;
  if (row.kind === "secret") return "***";
  return row.kind === "store" || row.kind === "url" ? maskStore(value) : value;
}

/**
 * Hides the password of a `postgres://user:password@host/db` and of a `?password=` in it. Also in
 * URLs that are not quite right, since those are what refusals show.
 */
export function maskStore(store: string): string {
  return store
    .replace(/^([a-z]+:\/\/[^:/?#@]*):.*@/i, "$1:***@")
    .replace(/([?&]password=)[^&#]*/, "$1***");
}

/** `16 MiB`, or plain bytes where no larger unit fits exactly. */
export function formatBytes(bytes: number): string {
  for (const [power, unit] of [
    [3, "GiB"],
    [2, "MiB"],
    [1, "KiB"],
  ] as const)
    if (bytes >= 1_024 ** power && bytes % 1_024 ** power === 0)
      return `${bytes / 1_024 ** power} ${unit}`;
  return `${bytes} bytes`;
}
