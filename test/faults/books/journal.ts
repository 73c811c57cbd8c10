/** Reads what the tasks wrote down: every run that started, how it ended, in the order of happening. */
import { readFileSync } from "node:fs";
import type { Mark } from "../tasks/performance.js";

export interface JournalEntry {
  readonly mark: Mark;
  readonly jobId: string;
  readonly attempt: number;
  /** The process's life, as `worker-2.7`. */
  readonly life: string;
  /** By the process's own clock, which may be wrong. */
  readonly wallMs: number;
}

const LINE = /^([SEF]) ([0-9A-Z]{26}) (\d+) (\S+) (\d+)$/;

/** @throws Error for a line that no task wrote: then the books can't be trusted. */
export function readJournal(path: string): JournalEntry[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const [, mark = "", jobId = "", attempt, life = "", wallMs] = LINE.exec(line) ?? [];
      if (jobId === "") throw new Error(`the journal has a broken line: ${line}`);
      return { mark: mark as Mark, jobId, attempt: Number(attempt), life, wallMs: Number(wallMs) };
    });
}
