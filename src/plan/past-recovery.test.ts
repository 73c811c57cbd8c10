import { expect, test } from "vitest";
import { settled, VirtualClock } from "../../test/virtual-clock.js";
import { systemProcesses } from "../runtime/process-identity.js";
import { WorkspaceBusy } from "./apply/busy.js";
import { pastRecovery } from "./past-recovery.js";

function held(purpose: string): WorkspaceBusy {
  return new WorkspaceBusy({
    holder: { owner: systemProcesses().self, purpose },
    folder: "/lock/1",
  });
}

/** Fails so often with this. */
function failing(fault: Error, times: number): { asked: number; work: () => Promise<string> } {
  const state = {
    asked: 0,
    work: () => (++state.asked > times ? Promise.resolve("done") : Promise.reject(fault)),
  };
  return state;
}

const { signal } = new AbortController();

test("a recovery is waited for, some seconds", async () => {
  const clock = new VirtualClock();
  const done = pastRecovery({ clock, signal }, failing(held("recovery"), 20).work);
  await clock.advance(2_000);
  expect(await done).toBe("done");
  const fault = held("recovery");
  const never = expect(pastRecovery({ clock, signal }, failing(fault, 1_000).work)).rejects.toBe(
    fault,
  );
  await clock.advance(5_000);
  await never;
  expect(clock.pendingTimers).toBe(0);
});

test("an apply is not, nor any other fault", async () => {
  const clock = new VirtualClock();
  for (const fault of [held("01J0000000000000000000000A"), new Error("no")]) {
    const state = failing(fault, 1);
    await expect(pastRecovery({ clock, signal }, state.work)).rejects.toBe(fault);
    expect(state.asked).toBe(1);
  }
});

test("a phase that is told to stop waits no longer", async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const state = failing(held("recovery"), 1_000);
  const stopped = pastRecovery({ clock, signal: controller.signal }, state.work);
  await settled();
  controller.abort(new Error("cancelled"));
  const ended = expect(stopped).rejects.toThrow("cancelled");
  await clock.advance(100);
  await ended;
  expect(state.asked).toBe(1);
});
