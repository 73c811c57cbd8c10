/** The words after `npm run faults --`. */
import { parseArgs } from "node:util";
import { SCENARIOS } from "./scenarios/all.js";
import type { Scenario } from "./scenario.js";
import { STORE_KINDS, type StoreKind } from "./stores/store.js";

export interface FaultsOptions {
  readonly scenarios: readonly Scenario[];
  readonly kinds: readonly StoreKind[];
  readonly jobs: number;
  readonly seed: number;
}

export const USAGE = `npm run faults -- [--only NAME] [--store sqlite|postgres] [--jobs N] [--seed N]
  NAME: ${SCENARIOS.map(({ name }) => name).join(", ")}`;

const DEFAULT_JOBS = 20_000;
const FEWEST_JOBS = 100;
const SEEDS = 2 ** 31;

/** @throws Error that says what is wrong. @param fresh a seed for a run that names none. */
export function readOptions(args: readonly string[], fresh: number): FaultsOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      store: { type: "string" },
      jobs: { type: "string" },
      seed: { type: "string" },
    },
  });
  const { only, store, jobs, seed } = values;
  const scenarios = SCENARIOS.filter(({ name }) => only === undefined || name === only);
  if (scenarios.length === 0) throw new Error(`--only: there is no scenario ${String(only)}`);
  const kinds = STORE_KINDS.filter((kind) => store === undefined || kind === store);
  if (kinds.length === 0) throw new Error(`--store: there is no store ${String(store)}`);
  return {
    scenarios,
    kinds,
    jobs: whole("--jobs", jobs, DEFAULT_JOBS, FEWEST_JOBS),
    seed: whole("--seed", seed, fresh % SEEDS, 0),
  };
}

function whole(flag: string, text: string | undefined, fallback: number, least: number): number {
  if (text === undefined) return fallback;
  const value = Number(text);
  if (!Number.isInteger(value) || value < least)
    throw new Error(`${flag}: expected a whole number from ${String(least)} on, got ${text}`);
  return value;
}
