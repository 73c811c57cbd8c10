import { expect, test } from "vitest";
import { ALL_STATES } from "../http/wire.js";
import { PLAIN, stateColour, wantsColour } from "./look.js";

test.each([
  [{}, true, true],
  [{}, false, false],
  [{ TERM: "dumb" }, true, false],
  [{ NO_COLOR: "1" }, true, false],
  [{ NO_COLOR: "" }, true, true],
  [{ FORCE_COLOR: "1" }, false, true],
  [{ FORCE_COLOR: "" }, false, true],
  [{ FORCE_COLOR: "0" }, true, false],
  [{ FORCE_COLOR: "false" }, true, false],
  [{ FORCE_COLOR: "1", NO_COLOR: "1" }, false, true],
])("%j, on a terminal: %j -> %j", (env, isTerminal, colour) => {
  expect(wantsColour(env, isTerminal)).toBe(colour);
});

test.each([...ALL_STATES, "draining", "lost"])("%s has a colour where there are any", (state) => {
  expect(stateColour(state, { columns: 80, colour: true })(state)).toMatch(
    new RegExp(`^\\u001b\\[\\d+m${state}\\u001b\\[0m$`),
  );
  expect(stateColour(state, PLAIN)(state)).toBe(state);
});
