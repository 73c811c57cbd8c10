/** What a run did and found, as a block of lines. */
import { FAULTS_FILE, type Outcome } from "./run.js";

/** More of one kind say nothing new. */
const SHOWN_FAULTS = 20;

export function report(outcome: Outcome): string {
  const { options, runs, submits, waits, newsDelaysMs, looks } = outcome;
  const { scenario, kind, seed } = options;
  const rows: [string, string][] = [
    [
      "jobs",
      `${count(outcome.accepted)} accepted, ${count(outcome.shellJobs)} of them from the shell: ${listed(outcome.ends)}`,
    ],
    ["faults", listed(outcome.deeds)],
    [
      "runs",
      `${count(runs.started)} started, ${count(runs.cut)} cut short, ${count(runs.stale)} ended without being recorded`,
    ],
    [
      "submits",
      `${count(submits.full)} × 429, ${count(submits.notReady)} × 503, ${count(submits.refused)} refused, ${count(submits.broken)} broken; longest time without an acceptance ${seconds(submits.longestGapMs)}`,
    ],
    [
      "waits",
      `${count(waits.jobs)} jobs in ${count(waits.polls)} polls, up to ${count(waits.mostAtOnce)} at once, ${count(waits.repeated)} asked again; news after ${String(quantile(newsDelaysMs, 0.5))} ms (median), ${String(quantile(newsDelaysMs, 0.99))} ms (99 %), ${String(newsDelaysMs.at(-1) ?? 0)} ms (longest)`,
    ],
    [
      "depth",
      `at most ${count(looks.deepest)} of ${count(scenario.shape.bound)} in ${count(looks.count)} looks, ${count(looks.blind)} of them without an answer`,
    ],
    [
      "time",
      `${seconds(outcome.tookMs)}, ${count(Math.round((outcome.accepted * 1_000) / outcome.tookMs))} jobs/s; longest time without an end ${seconds(outcome.longestPauseMs)}`,
    ],
    ["verdict", verdict(outcome)],
  ];
  return [
    `${scenario.name} on ${kind} (seed ${String(seed)}): ${scenario.about}`,
    ...rows.map(([name, text]) => `  ${name.padEnd(9)}${text}`),
  ].join("\n");
}

function verdict({ faults, folder }: Outcome): string {
  if (faults.length === 0) return "the books balance";
  const shown = faults.slice(0, SHOWN_FAULTS).map((fault) => `\n    - ${fault}`);
  const more =
    faults.length > SHOWN_FAULTS
      ? `\n    and ${count(faults.length - SHOWN_FAULTS)} more in ${FAULTS_FILE}`
      : "";
  return `THE BOOKS DO NOT BALANCE; logs, journal and ${FAULTS_FILE} in ${String(folder)}${shown.join("")}${more}`;
}

function listed(counts: ReadonlyMap<string, number>): string {
  if (counts.size === 0) return "none";
  return [...counts].map(([what, times]) => `${count(times)} × ${what}`).join(", ");
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function quantile(ascending: readonly number[], share: number): number {
  return ascending[Math.floor(share * (ascending.length - 1))] ?? 0;
}
