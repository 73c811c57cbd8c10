import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Line } from "./line.js";

describe("a line", () => {
  test("does what an array does", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("push" as const) }),
      fc.record({ kind: fc.constant("shift" as const) }),
      fc.record({ kind: fc.constant("leave" as const), which: fc.nat({ max: 30 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const line = new Line<number>();
        const model: number[] = [];
        const leaves: (() => boolean)[] = [];
        for (const move of steps) {
          if (move.kind === "push") {
            model.push(leaves.length);
            leaves.push(line.push(leaves.length));
          } else if (move.kind === "shift") {
            expect(line.shift()).toBe(model.shift());
          } else {
            const index = model.indexOf(move.which);
            expect(leaves[move.which]?.() ?? false).toBe(index >= 0);
            if (index >= 0) model.splice(index, 1);
          }
          expect(line.size).toBe(model.length);
          expect(line.head).toBe(model[0]);
        }
      }),
    );
  });
});
