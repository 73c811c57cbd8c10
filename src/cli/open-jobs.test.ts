import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { resolveSettings } from "../config.js";
import { withJobs } from "./open-jobs.js";
import { createTerminal } from "./terminal.js";

/** What a command that asks this server says on standard error. */
async function complaints(flags: { server: string; auth_token?: string }): Promise<string> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const terminal = createTerminal({ stdin: Readable.from([]), stdout, stderr });
  const settings = resolveSettings({ flags, env: {}, file: null });
  await withJobs({ ...settings, terminal }, async () => undefined);
  expect(stdout.read()).toBeNull();
  return String(stderr.read() ?? "");
}

test.each(["http://jobs.example.org:8202", "http://192.168.0.1/base", "http://[2001:db8::1]:8202"])(
  "a token that goes to %s in the clear is told, once",
  async (server) => {
    const told = await complaints({ server, auth_token: "secret" });
    expect(told).toBe(
      `jobtable: the token goes to ${server} unencrypted, for all on the way to read; give an https address\n`,
    );
    expect(await complaints({ server })).toBe("");
  },
);

test.each([
  "https://jobs.example.org",
  "http://127.0.0.1:8202",
  "http://[::1]:1",
  "http://localhost",
])("one that goes to %s is not", async (server) => {
  expect(await complaints({ server, auth_token: "secret" })).toBe("");
});
