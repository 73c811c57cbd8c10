/**
 * By which two submits with one idempotency key are known to ask for the same: SHA-256 (hex) of the
 * task's name and the input as JSON with its keys in order, the way of RFC 8785. Whitespace and the
 * order of keys don't count; options such as the priority don't either. Of a payload that can't be
 * read, which a retry may meet, it is the hash of the text.
 */
import { createHash } from "node:crypto";
import { decodePayload } from "../job/payload.js";

/** @param payloadJson as it is recorded. */
export function fingerprintOf(payloadJson: string): string {
  const decoded = decodePayload(payloadJson);
  if (decoded.kind !== "payload") return sha256(payloadJson);
  const { task, input } = decoded.payload;
  return sha256(`${JSON.stringify(task)}\n${canonicalJson(input)}`);
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** RFC 8785 leaves numbers and strings to ECMAScript, and orders keys by UTF-16 units, as `sort` does. */
export function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const fields = value as Readonly<Record<string, unknown>>;
  const parts = Object.keys(fields)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(fields[key])}`);
  return `{${parts.join(",")}}`;
}
