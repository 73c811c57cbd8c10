/**
 * What goes over the channel: who sent it (8 characters, so that a ledger can drop what it has told
 * its own listeners already), a letter, and ids.
 * - `w`: work may have come; `-`: it has not. Both are followed by the ids of changed jobs, with commas.
 * - `p`: the sender asks whether it hears itself; a number follows.
 * A payload is a hint and comes from anyone who may NOTIFY: what can't be read is dropped.
 */
import { IDS_PER_MESSAGE } from "./statements.js";

const ORIGIN_CHARS = 8;

export type Message =
  | { readonly kind: "changes"; readonly work: boolean; readonly jobIds: readonly string[] }
  | { readonly kind: "probe"; readonly number: number };

export interface Received {
  readonly origin: string;
  readonly message: Message;
}

/** The beginning of a message about changed jobs. */
export function changesPrefix(origin: string, work: boolean): string {
  return origin + (work ? "w" : "-");
}

export function changesMessages(
  origin: string,
  work: boolean,
  jobIds: readonly string[],
): string[] {
  const messages: string[] = [];
  for (let at = 0; at < jobIds.length; at += IDS_PER_MESSAGE)
    messages.push(changesPrefix(origin, work) + jobIds.slice(at, at + IDS_PER_MESSAGE).join(","));
  return messages;
}

export function probeMessage(origin: string, number: number): string {
  return `${origin}p${String(number)}`;
}

export function readMessage(payload: string): Received | null {
  const origin = payload.slice(0, ORIGIN_CHARS);
  const rest = payload.slice(ORIGIN_CHARS + 1);
  const letter = payload.charAt(ORIGIN_CHARS);
  if (letter === "p") return { origin, message: { kind: "probe", number: Number(rest) } };
  if (letter !== "w" && letter !== "-") return null;
  const jobIds = rest === "" ? [] : rest.split(",");
  return { origin, message: { kind: "changes", work: letter === "w", jobIds } };
}
