/** A file that was neither as before nor as after when it was to be put back: someone edited it. */
export interface Edited {
  /** Relative to the root of the workspace. */
  readonly path: string;
  /** Which version lies in the workspace now. */
  readonly inPlace: "edited" | "original";
  /** Absolute path of the other version; null where there is none: it was not there then. */
  readonly other: string | null;
}
