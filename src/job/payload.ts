/**
 * What a job carries to its runner, versioned. The text is recorded exactly as `encodePayload`
 * made it; older versions are brought up by upgraders, newer ones are refused.
 */

/** The version that this code writes. */
export const PAYLOAD_VERSION = 1;

export interface Payload {
  readonly task: string;
  readonly input: unknown;
}

/** Brings a payload's object from the version it is registered for to the next one. */
export type PayloadUpgrader = (payload: Record<string, unknown>) => Record<string, unknown>;

export type DecodedPayload =
  | { readonly kind: "payload"; readonly payload: Payload }
  | { readonly kind: "unreadable"; readonly errorMessage: string };

/** @param inputJson the input as JSON text; it is embedded, not parsed again. */
export function encodePayload(task: string, inputJson: string): string {
  return `{"schema_version":${String(PAYLOAD_VERSION)},"task":${JSON.stringify(task)},"input":${inputJson}}`;
}

/**
 * @param upgraders by the version that they take; each is applied in turn up to `current`.
 * @param current the version that the code knows.
 */
export function decodePayload(
  payloadJson: string,
  upgraders: ReadonlyMap<number, PayloadUpgrader> = new Map(),
  current: number = PAYLOAD_VERSION,
): DecodedPayload {
  const unreadable = (why: string): DecodedPayload => ({
    kind: "unreadable",
    errorMessage: `UnreadablePayload: ${why}`,
  });
  let parsed: unknown;
  try {
    parsed = JSON.parse(payloadJson);
  } catch {
    return unreadable("it is not JSON");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    return unreadable("it is not an object");
  let payload = parsed as Record<string, unknown>;
  let version = payload["schema_version"];
  if (typeof version !== "number" || !Number.isInteger(version) || version < 1)
    return unreadable("schema_version is not a positive integer");
  if (version > current)
    return unreadable(
      `schema_version ${String(version)} is newer than this version of jobtable knows (${String(current)}): upgrade the worker`,
    );
  while (version < current) {
    const upgrade = upgraders.get(version);
    if (upgrade === undefined)
      return unreadable(`no upgrader is registered for schema_version ${String(version)}`);
    try {
      payload = upgrade(payload);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return unreadable(`the upgrader of schema_version ${String(version)} failed: ${reason}`);
    }
    version += 1;
  }
  const task = payload["task"];
  if (typeof task !== "string") return unreadable("task is not a string");
  return { kind: "payload", payload: { task, input: payload["input"] } };
}
