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

test("a trouble can't steer the terminal", async () => {
  const stderr = new PassThrough();
  const terminal = createTerminal({ stdin: Readable.from([]), stdout: new PassThrough(), stderr });
  terminal.complain("job failed: \u001b[2J\u001b]0;owned\u0007oops");
  expect(String(stderr.read())).toBe("jobtable: job failed: oops\n");
});

test("width, colour and what changes are for terminals only", () => {
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 72 });
  const stderr = new PassThrough();
  const streams = { stdin: Readable.from([]), stdout, stderr };
  const terminal = createTerminal(streams);
  expect(terminal.look).toEqual({ columns: 72, colour: true });
  stdout.columns = 50;
  expect(terminal.look.columns).toBe(50);
  expect(terminal.liveAnswer()).not.toBeNull();
  expect(terminal.liveStatus()).toBeNull();
  expect(createTerminal(streams, { NO_COLOR: "1" }).look.colour).toBe(false);
  expect(createTerminal(streams, { TERM: "dumb" }).liveAnswer()).toBeNull();
  expect(createTerminal({ ...streams, stdout: stderr }).look).toEqual({
    columns: null,
    colour: false,
  });
});
