import fc from "fast-check";
import { expect, it } from "vitest";
import { Check } from "typebox/value";
import { Findings, InvalidPlan, type PlanSource } from "./findings.js";
import { planJsonSchema, PlanSchema } from "./schema.js";
import { fits } from "./shape.js";

const SOURCE: PlanSource = { name: "p", place: () => null, written: () => undefined };

/** Right and wrong for one key or another; some for any. */
const values: fc.Arbitrary<unknown> = fc.constantFrom(
  "a",
  "",
  " ",
  "a\nb",
  "10m",
  "head",
  "x".repeat(70_000),
  5,
  true,
  null,
  [],
  {},
  { A: "1", B_2: 2, c: true },
  { "A-B": "1" },
  { GIT_DIR: "1" },
  { A: null },
);
const keyed = (...keys: string[]): fc.Arbitrary<Record<string, unknown>> =>
  fc.dictionary(fc.constantFrom(...keys, "unknown"), values, { maxKeys: 3 });
const step = fc.oneof(
  fc.constant({ run: "a" }),
  fc.constant({ task: "a" }),
  fc
    .tuple(
      fc.constantFrom({ run: "a" }, { task: "a" }, {}),
      keyed(
        "run",
        "task",
        "shell",
        "cwd",
        "env",
        "input",
        "id",
        "name",
        "timeout",
        "continue_on_error",
      ),
    )
    .map(([base, more]) => ({ ...base, ...more })),
  values,
);
const steps = fc.oneof(fc.array(step, { maxLength: 3 }), values);
const plans = fc.oneof(
  fc
    .tuple(
      fc.constant({ name: "p", execute: [{ run: "a" }] }),
      keyed("name", "description", "workspace", "base", "env", "timeout", "$schema"),
      fc.record({ execute: steps, apply: steps }, { requiredKeys: [] }),
    )
    .map(([base, more, phases]) => ({ ...base, ...more, ...phases })),
  values,
);

it("what fits is what the published schema takes", () => {
  const published = JSON.parse(JSON.stringify(planJsonSchema())) as object;
  const seen = new Set<boolean>();
  fc.assert(
    fc.property(plans, (plan) => {
      const fit = fits(PlanSchema, plan, [], new Findings(SOURCE));
      seen.add(fit);
      expect(fit).toBe(Check(published, plan));
    }),
    { numRuns: 500 },
  );
  expect([...seen].sort()).toEqual([false, true]);
});

it("a plan that is wrong all over is not searched to its end", () => {
  const findings = new Findings(SOURCE);
  const wrong = Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`k${String(n)}`, n]));
  expect(() => fits(PlanSchema, wrong, [], findings)).toThrow(InvalidPlan);
  expect(findings.count).toBe(1_000);
});
