/** One file of a patch, as it is recorded and shown. */
export type Change = "added" | "deleted" | "modified" | "renamed" | "mode" | "type";

export interface FileSummary {
  /** Relative to the root, `/` between; of a renamed one the new path. */
  readonly path: string;
  /** The old path of a renamed one, which may be modified too; else null. */
  readonly from: string | null;
  /** `mode`: executable or not, with the same content. `type`: a file became a link or the reverse. */
  readonly change: Change;
  /** Lines; null for a binary file. */
  readonly insertions: number | null;
  readonly deletions: number | null;
}
