/** Why a step could not begin. It ends the step, not the run of the steps. */
import { codeOf } from "../../runtime/error-code.js";

export class StepFailure extends Error {
  /** @param name the error's type, as records show it: `name: message`. */
  constructor(name: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = name;
  }
}

/** What the system says when there is no room for one more process or file. */
const REASONS: Readonly<Record<string, string>> = {
  EMFILE: "too many files are open in this process",
  ENFILE: "too many files are open on this machine",
  EAGAIN: "there are too many processes",
  ENOMEM: "there is not enough memory",
  EACCES: "permission denied",
  ENOSPC: "the disk is full",
};

/** @param what could not be started. */
export function spawnFailure(what: string, error: unknown): StepFailure {
  const code = codeOf(error);
  const reason = REASONS[code];
  const said = error instanceof Error ? error.message : String(error);
  return new StepFailure(
    "SpawnFailed",
    `${what} can't be started: ${reason === undefined ? said : `${reason} (${code})`}`,
    { cause: error },
  );
}
