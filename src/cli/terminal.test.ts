import { PassThrough, Readable, Writable } from "node:stream";
import { expect, test } from "vitest";
import { createTerminal } from "./terminal.js";

test("answers and troubles go their own ways, a trouble in one line", async () => {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const terminal = createTerminal({ stdin: Readable.from(["a", "b"]), stdout, stderr });
  terminal.print("answer");
  terminal.complain("first\n  second\n");
  expect(await terminal.readInput()).toBe("ab");
  await terminal.flush();
  expect(String(stdout.read())).toBe("answer\n");
  expect(String(stderr.read())).toBe("jobtable: first second\n");
});

test("a reader that goes away is no trouble, and does not hold up the end", async () => {
  const stdout = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error("gone"), { code: "EPIPE" })),
  });
  const terminal = createTerminal({ stdin: Readable.from([]), stdout, stderr: new PassThrough() });
  terminal.print("nobody reads this");
  await terminal.flush();
  expect(stdout.destroyed).toBe(true);
});
