/**
 * Brings a recorded input up to the version that its task takes now: each upgrader in turn, before
 * the input's schema. Upgraders are a user's code: whatever they do is a failed run with a message
 * that names the task and the version, never a crash.
 */
import { FIRST_VERSION, type Payload } from "../job/payload.js";
import { describe, failed, type Failure } from "./failure.js";
import type { TaskOptions } from "./task.js";

export type UpgradedInput = { readonly kind: "input"; readonly input: unknown } | Failure;

/** The version of the inputs that a task takes. */
export function versionOf(definition: Pick<TaskOptions, "version">): number {
  return definition.version ?? FIRST_VERSION;
}

/** Never rejects. A payload that can't be brought up is not tried again: that would end the same way. */
export async function upgradeInput(
  definition: Pick<TaskOptions, "version" | "upgrade">,
  payload: Payload,
): Promise<UpgradedInput> {
  const current = versionOf(definition);
  const task = `task "${payload.task}"`;
  if (payload.version > current)
    return unreadable(
      `${task}: the input's version ${String(payload.version)} is newer than this worker's (${String(current)}): upgrade the worker`,
    );
  let { input } = payload;
  for (let from = payload.version; from < current; from += 1) {
    const upgrader = definition.upgrade?.[from];
    if (upgrader === undefined)
      return unreadable(`${task}: there is no upgrader for an input of version ${String(from)}`);
    try {
      input = await upgrader(input);
    } catch (error) {
      return unreadable(
        `${task}: the upgrader of version ${String(from)} threw ${describe(error)}`,
      );
    }
    // The likeliest slip, and without a schema nothing else would notice.
    if (input === undefined)
      return unreadable(`${task}: the upgrader of version ${String(from)} returned nothing`);
  }
  return { kind: "input", input };
}

function unreadable(why: string): Failure {
  return failed("UnreadablePayload", why, "never");
}
