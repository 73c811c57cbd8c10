/**
 * A store's URL, taken apart: where the server is, and in which schema the ledger lives. Messages
 * name a server by its host, port and database; a user or a password never leaves this file but in
 * the connection string itself.
 */
import { JobtableError } from "../../job/errors.js";

export interface Address {
  /** As libpq takes it, without what is ours. */
  readonly connectionString: string;
  /** Settings of the session that the URL asks for, as `-c name=value`; may be empty. */
  readonly options: string;
  readonly schema: string;
  /** The one channel of this schema. */
  readonly channel: string;
  /** `host:port/database`, for messages. */
  readonly label: string;
}

const DEFAULT_SCHEMA = "jobtable";
const DEFAULT_PORT = "5432";
/** Needs no quotes anywhere; with the channel's prefix it stays below the 63 bytes of an identifier. */
const SCHEMA = /^[a-z_][a-z0-9_]{0,49}$/;
/** Names that begin like this are the server's own. */
const RESERVED = "pg_";

/** @throws JobtableError `invalid_config` when it is no URL of a PostgreSQL server, or names no schema that can be. */
export function parseAddress(url: string): Address {
  const parsed = URL.parse(url);
  if (parsed === null || !/^postgres(ql)?:$/.test(parsed.protocol))
    throw new JobtableError(
      "invalid_config",
      "the store is not a PostgreSQL URL: write postgres://USER@HOST/DATABASE?schema=NAME",
    );
  const schema = take(parsed, "schema") ?? DEFAULT_SCHEMA;
  if (!SCHEMA.test(schema) || schema.startsWith(RESERVED))
    throw new JobtableError(
      "invalid_config",
      `the store's schema ${JSON.stringify(schema)} can't be used: name one with 1 to 50 small letters, digits and _, not starting with a digit or pg_`,
    );
  const options = take(parsed, "options") ?? "";
  const host =
    parsed.hostname === "" ? (parsed.searchParams.get("host") ?? "localhost") : parsed.hostname;
  const port = parsed.port === "" ? DEFAULT_PORT : parsed.port;
  return {
    connectionString: parsed.href,
    options,
    schema,
    channel: `jobtable_${schema}`,
    label: `${decodeURIComponent(host)}:${port}${parsed.pathname}`,
  };
}

function take(url: URL, name: string): string | null {
  const value = url.searchParams.get(name);
  url.searchParams.delete(name);
  return value;
}
