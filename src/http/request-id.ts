/**
 * Request ids: the caller's own (`req_id` in the body, before the `X-Request-ID` header), or one
 * made here. A body's id may be any text up to the limit; one that can't stand in a header is
 * echoed in the body alone, and the header carries a made one.
 */
import { randomUUID } from "node:crypto";
import { MAX_REQUEST_ID_CHARS } from "../job/limits.js";

/** Visible ASCII, with spaces inside: what survives every proxy unchanged. */
const HEADER_SAFE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

export function isHeaderSafe(id: string): boolean {
  return id.length <= MAX_REQUEST_ID_CHARS && HEADER_SAFE.test(id);
}

/** @param header the request's own, as Node gives it. */
export function requestIdFrom(header: string | string[] | undefined, make: () => string): string {
  return typeof header === "string" && isHeaderSafe(header) ? header : make();
}

/**
 * `<8 hex of this process>-<count>`: unique, and in order of arrival within one process. A random
 * id for each request would say no more and cost more than the rest of its headers.
 */
export function requestIdSource(): () => string {
  const prefix = randomUUID().slice(0, 8);
  let count = 0;
  return () => {
    count += 1;
    return `${prefix}-${count.toString(36)}`;
  };
}
