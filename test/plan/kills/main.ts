/** `npm run kills`: a hundred kills by default; prints its seed and what it found, exit code 1 where something does not hold. */
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { keepAlive } from "../../../src/runtime/keep-alive.js";
import { killPlans } from "./run.js";

const { values } = parseArgs({
  options: {
    kills: { type: "string", default: "100" },
    seed: { type: "string" },
    verbose: { type: "boolean" },
  },
});
const kills = Number(values.kills);
const seed = Number(values.seed ?? randomInt(2 ** 31));
if (!Number.isInteger(kills) || kills < 1 || !Number.isInteger(seed) || seed < 0)
  throw new RangeError("--kills and --seed take whole numbers");
const say = (line: string): void => void process.stdout.write(`${line}\n`);
say(`seed ${String(seed)}, ${String(kills)} kills`);
const release = keepAlive();
try {
  const { faults, ...figures } = await killPlans({
    kills,
    seed,
    ...(values.verbose === true ? { say } : {}),
  });
  say(JSON.stringify(figures));
  for (const fault of faults) say(`- ${fault}`);
  say(faults.length === 0 ? "untouched or fully changed, every time" : "NOT AS IT SHOULD BE");
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  release();
}
