import { EventEmitter } from "node:events";
import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { orNamed } from "./recorded.js";
import { createTerminal } from "./terminal.js";

const ID = "job_01J0000000000000000000000A";

class TestProcess extends EventEmitter {
  readonly pid = 7;
  readonly killed: string[] = [];

  kill(pid: number, signal: NodeJS.Signals): void {
    this.killed.push(`${String(pid)} ${signal}`);
  }
}

function setUp() {
  const process = new TestProcess();
  const stderr = new PassThrough();
  const streams = { stdin: Readable.from([]), stdout: new PassThrough(), stderr };
  const terminal = createTerminal(streams, {}, process);
  return { process, terminal, said: () => String(stderr.read() ?? "") };
}

test("a wait that fails names its job, one that does not says nothing", async () => {
  const { process, terminal, said } = setUp();
  const cut = new Error("cut");
  await expect(orNamed(ID, terminal, () => Promise.reject(cut))).rejects.toBe(cut);
  expect(said()).toMatch(new RegExp(`^jobtable: .*${ID}.*\n$`));
  expect(await orNamed(ID, terminal, () => Promise.resolve(1))).toBe(1);
  expect(said()).toBe("");
  expect(process.eventNames()).toEqual([]);
});

test("one that a signal ends names its job, and the signal does what it does", async () => {
  const { process, terminal, said } = setUp();
  let end = (): void => undefined;
  const waiting = orNamed(ID, terminal, () => new Promise<void>((resolve) => (end = resolve)));
  process.emit("SIGINT", "SIGINT");
  expect(said()).toMatch(new RegExp(`^jobtable: .*${ID}.*\n$`));
  expect(process.killed).toEqual(["7 SIGINT"]);
  expect(process.eventNames()).toEqual([]);
  end();
  await waiting;
});
