/** What the two kinds of steps are given, and how they answer. */
import type { EndedStep, StepsRequest } from "./api.js";
import type { StepOutputs } from "./step-outputs.js";

export interface StepsContext extends StepsRequest {
  /** Of the steps so far. */
  readonly outputs: StepOutputs;
}

/** What a step adds to what is known of it anyway. */
export type StepEnd = Pick<EndedStep, "state"> &
  Partial<Pick<EndedStep, "exitCode" | "signal" | "errorMessage" | "log" | "logBytes">>;
