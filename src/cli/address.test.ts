import { expect, test } from "vitest";
import type { Config } from "../config/settings.js";
import { resolveSettings } from "../config.js";
import { isLoopback, listenError, portOf, refuseOpenDoor, urlOf } from "./address.js";

const config = (flags: { host?: string; auth_token?: string }): Config =>
  resolveSettings({ flags, env: {}, file: null }).config;

test.each([
  ["127.0.0.1", true],
  ["127.1.2.3", true],
  ["::1", true],
  ["localhost", true],
  ["0.0.0.0", false],
  ["::", false],
  ["192.168.0.1", false],
  ["127.0.0.1.example.org", false],
  ["localhost.example.org", false],
])("%s is loopback: %s", (host, loopback) => {
  expect(isLoopback(host)).toBe(loopback);
  const open = (): void => refuseOpenDoor(config({ host }));
  if (loopback) expect(open).not.toThrow();
  else expect(open).toThrow(/auth_token must be set/);
  expect(() => refuseOpenDoor(config({ host, auth_token: "x" }))).not.toThrow();
});

test("addresses as they are written", () => {
  expect(urlOf("127.0.0.1", 1)).toBe("http://127.0.0.1:1");
  expect(urlOf("::1", 1)).toBe("http://[::1]:1");
  expect(portOf({ port: 5, address: "", family: "IPv4" }, 0)).toBe(5);
  expect(portOf(null, 7)).toBe(7);
});

test("an error that is not about the address stays what it is", () => {
  const bug = new Error("bug");
  expect(listenError(bug, config({}))).toBe(bug);
  expect(listenError(Object.assign(new Error("x"), { code: "EACCES" }), config({}))).toMatchObject({
    code: "invalid_config",
    message: expect.stringContaining("127.0.0.1:8202") as string,
  });
});
