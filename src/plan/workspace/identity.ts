/** Reads back who wrote a file of ours. */
import type { ProcessIdentity } from "../../runtime/process-identity.js";

export function isIdentity(value: unknown): value is ProcessIdentity {
  if (typeof value !== "object" || value === null) return false;
  if (!("host" in value) || typeof value.host !== "string") return false;
  if (!("pid" in value) || typeof value.pid !== "number") return false;
  return "pidStamp" in value && typeof value.pidStamp === "string";
}
