import { expect, test } from "vitest";
import { StepLog } from "../plan/steps/step-log.js";
import { FreshOutput } from "./fresh-output.js";

const HEAD = 20;
const TAIL = 40;

/** A step that writes, and someone who looks. */
function watched(): { write: (text: string) => void; look: (state?: "succeeded") => string } {
  const log = new StepLog(HEAD, TAIL);
  const fresh = new FreshOutput();
  return {
    write: (text) => {
      log.write("stdout", Buffer.from(text));
    },
    look: (state) =>
      fresh.take({ log: log.text(), logBytes: log.bytes, state: state ?? "running" }),
  };
}

test("whole lines while it runs, the rest at its end", () => {
  const { write, look } = watched();
  write("one\ntw");
  expect(look()).toBe("one\n");
  expect(look()).toBe("");
  write("o\nthree");
  expect(look()).toBe("two\n");
  expect(look("succeeded")).toBe("three");
});

test("a log that loses its middle is told on, each line once, also where all lines are alike", () => {
  for (const line of [(n: number) => `line ${String(n).padStart(4)}\n`, () => "the same!\n"]) {
    const { write, look } = watched();
    for (let n = 0; n < 50; n += 1) {
      write(line(n));
      expect(look()).toBe(line(n));
    }
  }
});

test("what came and went between two looks is told as left out, once", () => {
  const { write, look } = watched();
  write("begin\n");
  expect(look()).toBe("begin\n");
  for (let n = 0; n < 100; n += 1) write(`line ${String(n).padStart(4)}\n`);
  expect(look()).toMatch(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n[^]*line {3}99\n$/);
  write("more\n");
  expect(look()).toBe("more\n");
  write("last");
  expect(look("succeeded")).toBe("last");
});
