import { expect, test } from "vitest";
import type { DiagnosticsView } from "../client/replies.js";
import { diagnosticsText } from "./diagnostics-text.js";
import { PLAIN } from "./look.js";

const NOW = "2026-01-01T00:00:00.000Z";

function view(changes: Partial<DiagnosticsView>): DiagnosticsView {
  return {
    ok: true,
    problems: [],
    async: { enabled: true, max_workers: 4, poll_interval_ms: 1_000 },
    ledger: { kind: "memory", software: "memory", schema_version: null, latency_ms: 1, now: NOW },
    depth: { queued: 0, running: 0, total: 0, limit: 16, oldest_queued_ms: null },
    oldest_queued: null,
    workers: [],
    stuck: [],
    unserved: [],
    ...changes,
  };
}

const blockOf = (text: string, head: string): string[] =>
  text
    .split("\n\n")
    .find((block) => block.startsWith(head))
    ?.split("\n") ?? [];

test("long lists are cut, and say by how much", () => {
  const unserved = [...Array(100).keys()].map((n) => ({ task: `task-${n}`, queued: 1 }));
  const stuck = unserved.map(({ task }) => ({
    job_id: `job_of_${task}`,
    task,
    worker_id: null,
    last_heartbeat: NOW,
  }));
  const text = diagnosticsText(view({ unserved, stuck }), "the store", PLAIN);
  for (const head of ["TASK WITHOUT A WORKER", "STUCK JOB"]) {
    const block = blockOf(text, head);
    expect(block).toHaveLength(12);
    expect(block.at(-1)).toBe("and 90 more");
  }
  const short = diagnosticsText(view({ unserved: unserved.slice(0, 10) }), "the store", PLAIN);
  expect(blockOf(short, "TASK WITHOUT A WORKER")).toHaveLength(11);
  expect(short).not.toContain("more");
});
