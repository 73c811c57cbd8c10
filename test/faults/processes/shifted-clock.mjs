/**
 * Loaded before the command line (`node --import`): a process whose wall clock is off by
 * FAULTS_CLOCK_SHIFT_MS, in its threads too. Everything in the product that asks for the time asks
 * `Date` (src/runtime/clock.ts; a lint rule holds that), so this is the same as a wrong clock of the
 * machine, without a library between Node and the system whose own waiting may break.
 */
const shiftMs = Number(process.env.FAULTS_CLOCK_SHIFT_MS);
const RealDate = Date;
const now = () => RealDate.now() + shiftMs;

globalThis.Date = new Proxy(RealDate, {
  construct: (_, args) => (args.length === 0 ? new RealDate(now()) : new RealDate(...args)),
  apply: () => new RealDate(now()).toString(),
  get: (target, key) => (key === "now" ? now : Reflect.get(target, key)),
});
