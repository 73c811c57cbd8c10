/** Where the server listens: who may reach it, and how the address is written. */
import { isIPv4, isIPv6, type AddressInfo } from "node:net";
import type { Config } from "../config/settings.js";
import { misuse } from "./exit-code.js";

/** Only this machine reaches it. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}

/**
 * Without a token everyone who reaches the server may run tasks, so only this machine may.
 * @throws JobtableError
 */
export function refuseOpenDoor({ host, authToken }: Config): void {
  if (authToken === null && !isLoopback(host))
    throw misuse(
      `setting host: ${host} can be reached from other machines, so auth_token must be set (--auth-token or JOBTABLE_AUTH_TOKEN)`,
    );
}

export function urlOf(host: string, port: number): string {
  return `http://${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/** The port that was really taken. */
export function portOf(address: AddressInfo | string | null, wanted: number): number {
  return typeof address === "object" && address !== null ? address.port : wanted;
}

const REASONS: ReadonlyMap<string | undefined, string> = new Map([
  [
    "EADDRINUSE",
    "another process listens there; stop it, or choose another --port (0 picks a free one)",
  ],
  ["EACCES", "this user may not; choose a --port from 1024 on"],
  ["EADDRNOTAVAIL", "this machine has no such address; choose another --host"],
  ["ENOTFOUND", "no such host is known; choose another --host"],
]);

/** What `listen` rejected with, as one line; an error that is not about the address stays what it is. */
export function listenError(error: unknown, { host, port }: Config): unknown {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  const reason = REASONS.get(code);
  return reason === undefined ? error : misuse(`can't listen on ${host}:${port}: ${reason}`);
}
