/** The pages of docs/ that repeat what a table in the code says, compared with it both ways. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { createMetrics } from "../../src/http/metrics.js";
import { FAULTS, STATES } from "../../src/http/wire.js";
import { ERRORS } from "../../src/job/errors.js";
import { planJsonSchema } from "../../src/plan/file/schema.js";
import { ALL_STATUSES, isTerminal, TERMINAL_STATUSES, TRANSITIONS } from "../../src/job/state.js";

function page(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), "utf8");
}

/** The cells of the table whose header is exactly `columns`; code marks are taken off. */
function tableRows(text: string, ...columns: string[]): string[][] {
  const tables = text.split(/\n{2,}/).filter((block) => block.startsWith("|"));
  const found = tables.map((block) => block.split("\n").map(cellsOf));
  const table = found.find(([header]) => header?.join() === columns.join());
  if (table === undefined) throw new Error(`no table with the columns ${columns.join(", ")}`);
  return table.slice(2).filter((row) => row.length > 0);
}

function cellsOf(line: string): string[] {
  return line
    .split("|")
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll("`", ""));
}

it("docs/state-machine.md has the moves of TRANSITIONS", () => {
  const rows = tableRows(page("state-machine.md"), "event", "from", "to", "by", "when");
  const law = Object.entries(TRANSITIONS).map(([event, { from, to, by }]) => [event, from, to, by]);
  expect(rows.map((row) => row.slice(0, 4))).toEqual(law);
});

it("docs/state-machine.md draws the moves of TRANSITIONS", () => {
  const drawn = page("state-machine.md").matchAll(/^ {2}(\S+) --> (\S+?)(?:: (\w+))?$/gm);
  const edges = [...drawn].map(([, from, to, event]) => [from, to, event ?? ""].join(" "));
  const law = [
    "[*] queued ",
    ...Object.entries(TRANSITIONS).map(([event, { from, to }]) => `${from} ${to} ${event}`),
    ...TERMINAL_STATUSES.map((status) => `${status} [*] `),
  ];
  expect(edges).toEqual(law);
});

it.each(["state-machine.md", "http.md"])("docs/%s has the words of every status", (name) => {
  const rows = tableRows(page(name), "status", "state", "terminal");
  const law = ALL_STATUSES.map((status) => [
    status,
    STATES[status],
    isTerminal(status) ? "yes" : "no",
  ]);
  expect(rows).toEqual(law);
});

it("docs/errors.md lists the registry of errors", () => {
  const columns = ["code", "HTTP", "retry", "sentence", "when, and what to do"];
  const rows = tableRows(page("errors.md"), ...columns);
  const law = Object.entries(ERRORS).map(([code, { http, retryable, message }]) => [
    code,
    String(http),
    retryable ? "yes" : "no",
    message,
  ]);
  expect(rows.map((row) => row.slice(0, 4))).toEqual(law);
  for (const [code = "", , , , advice] of rows) expect(advice, code).not.toBe("");
});

it("docs/http.md lists the codes of the envelope", () => {
  const rows = tableRows(page("http.md"), "code", "msg", "HTTP", "when");
  const law = Object.values(FAULTS).map(({ code, msg, http }) => [String(code), msg, String(http)]);
  const success = ["0", "success", "200"];
  expect(rows.map((row) => row.slice(0, 3))).toEqual([success, ...law]);
});

it("docs/operations.md lists the metrics", () => {
  const rows = tableRows(page("operations.md"), "name", "type", "labels", "meaning");
  const { registry } = createMetrics({ tasks: [], processMetrics: false });
  const exported = registry.getMetricsAsArray().map(({ name }) => name);
  expect(rows.map(([name]) => name).sort()).toEqual(exported.sort());
});

it("schemas/plan.schema.json is the schema that plan files are checked by", () => {
  const published: unknown = JSON.parse(page("../schemas/plan.schema.json"));
  expect(published).toEqual(JSON.parse(JSON.stringify(planJsonSchema())));
});
