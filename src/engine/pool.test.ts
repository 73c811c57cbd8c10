import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Pool, type Slot } from "./pool.js";

describe("a pool", () => {
  test("grants at once while slots are free, then strictly in order", () => {
    const pool = new Pool(1);
    const order: string[] = [];
    const slots: Slot[] = [];
    const enter = (name: string): (() => boolean) | null =>
      pool.enter((slot) => {
        order.push(name);
        slots.push(slot);
      });
    expect(enter("a")).toBeNull();
    const leave = enter("b");
    enter("c");
    expect(pool).toMatchObject({ busy: 1, waiting: 2 });
    expect(leave?.()).toBe(true);
    expect(leave?.()).toBe(false);
    slots[0]?.release();
    expect(order).toEqual(["a", "c"]);
    slots[1]?.release();
    expect(pool).toMatchObject({ busy: 0, waiting: 0 });
  });

  test("F7: takes a slot back once, however often it is given back", () => {
    const pool = new Pool(1);
    let held: Slot | null = null;
    pool.enter((slot) => (held = slot));
    let granted = 0;
    for (let n = 0; n < 3; n += 1) pool.enter(() => (granted += 1));
    const slot = held as Slot | null;
    slot?.release();
    slot?.release();
    slot?.release();
    expect(granted).toBe(1);
    expect(pool.busy).toBe(1);
  });

  test("lets a slot be handed on, which takes it from whoever had it", () => {
    const pool = new Pool(1);
    const held: Slot[] = [];
    pool.enter((slot) => held.push(slot));
    const next = held[0]?.handOn();
    held[0]?.release();
    expect(pool.busy).toBe(1);
    held[0]?.handOn().release();
    expect(pool.busy).toBe(1);
    next?.release();
    expect(pool.busy).toBe(0);
  });

  test("keeps its slots when whoever gets one throws", () => {
    const pool = new Pool(1);
    expect(() =>
      pool.enter(() => {
        throw new Error("no");
      }),
    ).toThrow("no");
    expect(pool.busy).toBe(0);
  });

  test("never grants more slots than it has, loses none, and keeps the order", () => {
    const step = fc.oneof(
      { weight: 3, arbitrary: fc.record({ kind: fc.constant("enter" as const) }) },
      {
        weight: 2,
        arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(40) }),
      },
      {
        weight: 1,
        arbitrary: fc.record({ kind: fc.constant("leave" as const), which: fc.nat(40) }),
      },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.array(step, { maxLength: 80 }),
        (size, steps) => {
          const pool = new Pool(size);
          const slots = new Map<number, Slot>();
          const leaves: ((() => boolean) | null)[] = [];
          const grants: number[] = [];
          const left = new Set<number>();
          const released = new Set<number>();
          for (const move of steps) {
            if (move.kind === "enter") {
              const id = leaves.length;
              leaves.push(null);
              leaves[id] = pool.enter((slot) => {
                slots.set(id, slot);
                grants.push(id);
              });
            } else if (move.kind === "release") {
              const slot = slots.get(move.which);
              slot?.release();
              if (slot !== undefined) released.add(move.which);
            } else if (leaves[move.which]?.() === true) left.add(move.which);
            const held = slots.size - released.size;
            expect(held).toBeLessThanOrEqual(size);
            expect(pool.busy).toBe(held);
            expect(pool.waiting).toBe(leaves.length - left.size - slots.size);
            if (pool.waiting > 0) expect(held).toBe(size);
          }
          expect(grants).toEqual([...grants].sort((a, b) => a - b));
          for (const slot of slots.values()) slot.release();
          // Every release grants the next; nothing is left over.
          while (slots.size > released.size) {
            const before = slots.size;
            for (const [id, slot] of slots) {
              slot.release();
              released.add(id);
            }
            if (slots.size === before) break;
          }
          expect(pool).toMatchObject({ busy: 0, waiting: 0 });
        },
      ),
    );
  });
});
