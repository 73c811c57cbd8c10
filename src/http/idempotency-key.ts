/**
 * The idempotency key of a submit: the body's `idempotency_key`, or the header `Idempotency-Key`,
 * which the bare form of a body needs. The header's draft standard (draft-ietf-httpapi-idempotency-
 * key-header) makes it a quoted string, custom sends it bare: both are taken, and mean the same key.
 */
import { keyFault } from "../engine/submit-options.js";
import type { Issue } from "./wire.js";

export type ReadKey =
  | { readonly kind: "key"; readonly key: string | undefined }
  | { readonly kind: "refused"; readonly issue: Issue };

/** A quoted string of RFC 8941: printable ASCII, with `\"` and `\\` for the two. */
const QUOTED = /^"((?:[ !#-[\]-~]|\\["\\])*)"$/;
const PRINTABLE = /^[ -~]*$/;

/**
 * @param headers each time that the header was sent.
 * @param inBody undefined: not given.
 */
export function readKey(headers: readonly string[], inBody: unknown): ReadKey {
  const [header, ...others] = headers;
  if (others.length > 0) return refused("Idempotency-Key", "was sent more than once");
  if (header !== undefined && !PRINTABLE.test(header))
    return refused("Idempotency-Key", "must be ASCII; other text goes into idempotency_key");
  const [, quoted] = QUOTED.exec(header ?? "") ?? [];
  const inHeader = quoted === undefined ? header : quoted.replaceAll(/\\(.)/g, "$1");
  if (inHeader !== undefined && inBody !== undefined && inHeader !== inBody)
    return refused("idempotency_key", "is not the one of the header Idempotency-Key");
  const key = inBody === undefined ? inHeader : inBody;
  if (key === undefined) return { kind: "key", key };
  const fault = keyFault(key);
  if (fault === null && typeof key === "string") return { kind: "key", key };
  return refused(inBody === undefined ? "Idempotency-Key" : "idempotency_key", fault ?? "");
}

function refused(path: string, message: string): ReadKey {
  return { kind: "refused", issue: { path, message } };
}
