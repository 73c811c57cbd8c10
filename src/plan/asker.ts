/**
 * Who asked for a phase that runs in place: a job that no other process claims, so that it would wait
 * for ever when that one is killed before its worker has claimed it.
 */
import type { ProcessIdentity } from "../runtime/process-identity.js";
import { isIdentity } from "./workspace/identity.js";

export function askedBy(asker: ProcessIdentity): { readonly asker: ProcessIdentity } {
  return { asker };
}

/** Null where the payload names none, or can't be read. */
export function askerOf(payloadJson: string): ProcessIdentity | null {
  try {
    const payload = JSON.parse(payloadJson) as { readonly extra?: { readonly asker?: unknown } };
    const asker = payload.extra?.asker;
    return isIdentity(asker) ? asker : null;
  } catch {
    return null;
  }
}
