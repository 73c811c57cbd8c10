/** The queries of the job endpoints, from their text to what the engine takes. */
import { parse } from "node:querystring";
import { parseJobId, parsePlanId } from "../job/id.js";
import type { Status } from "../job/state.js";
import type { ListQuery as LedgerQuery } from "../ledger/ledger.js";
import { DEFAULT_LIST_LIMIT, DEFAULT_WAIT_MS, MAX_WAIT_MS, type ListQuery } from "./schemas.js";
import { ALL_STATES, statusOf, type Problem } from "./wire.js";

/** `?state=&task=ocr` asks for nothing but the task: a parameter without a value counts as left out. */
export function parseQuery(text: string): Record<string, unknown> {
  if (text === "") return {};
  return Object.fromEntries(Object.entries(parse(text)).filter(([, value]) => value !== ""));
}

/** @param timeout as it stood in the query: absent, not a number or <= 0 is the default. */
export function waitMs(timeout: unknown): number {
  const givenMs = typeof timeout === "string" ? Number(timeout) : NaN;
  return givenMs > 0 ? Math.ceil(Math.min(givenMs, MAX_WAIT_MS)) : DEFAULT_WAIT_MS;
}

export type ReadQuery =
  | { readonly kind: "query"; readonly query: LedgerQuery }
  | { readonly kind: "refused"; readonly problem: Problem };

export function listQuery({ state, task, plan, limit, cursor }: ListQuery): ReadQuery {
  const statuses: Status[] = [];
  for (const word of state?.split(",") ?? []) {
    const status = statusOf(word.trim());
    if (status === undefined) return refused("state", `unknown state: ${word}`, ALL_STATES);
    statuses.push(status);
  }
  const after = cursor === undefined ? undefined : parseJobId(cursor);
  if (after === null) return refused("cursor", "not a next_cursor of a page before");
  const planId = plan === undefined ? undefined : parsePlanId(plan);
  if (planId === null) return refused("plan", "not a plan's id");
  return {
    kind: "query",
    query: {
      limit: limit ?? DEFAULT_LIST_LIMIT,
      ...(statuses.length > 0 ? { statuses } : {}),
      ...(task === undefined ? {} : { task }),
      ...(planId === undefined ? {} : { planId }),
      ...(after === undefined ? {} : { cursor: after }),
    },
  };
}

function refused(path: string, message: string, known?: readonly string[]): ReadQuery {
  return {
    kind: "refused",
    problem: {
      fault: "invalid_input",
      detail: `${path}: ${message}`,
      issues: [{ path, message }],
      ...(known === undefined ? {} : { known }),
    },
  };
}
