/**
 * What the tasks of a fault run do: they write into the journal when a run starts and how it ends, so
 * that the books know what really ran, whatever the ledger says about it. One line is one write to a
 * file opened for appending, so the lines of all processes stand in the order of their happening.
 */
import { openSync, writeSync } from "node:fs";
import type { TaskContext } from "jobtable";

/** One job's input. */
export interface Part {
  /** Which of the run's jobs it is. */
  readonly n: number;
  /** How long a run takes. */
  readonly ms: number;
  /** How many of its first attempts fail. */
  readonly fails: number;
}

/** One job's result; tells which job it belongs to, and which run made it. */
export interface Performed {
  readonly n: number;
  readonly attempt: number;
  readonly worker: string;
}

/** `S` started, `E` ended well, `F` failed as it was told to. */
export type Mark = "S" | "E" | "F";

const worker = process.env["FAULTS_WORKER"] ?? "";
let journal: number | null = null;

function write(mark: Mark, jobId: string, attempt: number): void {
  journal ??= openSync(process.env["FAULTS_JOURNAL"] ?? "", "a");
  writeSync(journal, `${mark} ${jobId} ${String(attempt)} ${worker} ${String(Date.now())}\n`);
}

/** @param work takes as many ms as it is told. */
export async function perform(
  { n, ms, fails }: Part,
  { jobId, attempt }: Pick<TaskContext, "jobId" | "attempt">,
  work: (ms: number) => unknown,
): Promise<Performed> {
  const id = (jobId ?? "").replace(/^job_/, "");
  write("S", id, attempt);
  await work(ms);
  if (attempt <= fails) {
    write("F", id, attempt);
    throw new Error(`told to fail ${String(n)}`);
  }
  write("E", id, attempt);
  return { n, attempt, worker };
}
