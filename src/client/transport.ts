/**
 * One request to a server and its reply. Every request has an end: a server that does not answer in
 * time counts as out of reach. Redirects are told, not followed: a POST would become a GET.
 */

export interface TransportOptions {
  /** `http://HOST:PORT`, with the path under which a proxy shows it, if any. */
  readonly server: string;
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string | null;
  /** Default: the platform's. */
  readonly fetch?: Fetch;
}

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What a request rejects with. `message` is one line: what, where, what to do. */
export class ClientError extends Error {
  constructor(
    /**
     * `unreachable`: nothing answered. `unavailable`: the server can't work now. `unauthorized`: no
     * token, or a wrong one. `unexpected`: what answered is broken, or no such server.
     */
    readonly reason: "unreachable" | "unavailable" | "unauthorized" | "unexpected",
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = "ClientError";
  }
}

export interface Reply {
  readonly status: number;
  /** The body as it came. */
  readonly text: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Headers;
}

export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  /** Below the server's address, without a slash at its start. */
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the server may take on purpose; default 0. */
  readonly extraMs?: number;
}

/** A server that is alive answers sooner, however busy. */
const ANSWER_LIMIT_MS = 30_000;

export class Transport {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: Fetch;

  /** @throws ClientError `unexpected` where `server` is no http address. */
  constructor({ server, token = null, fetch: own = fetch }: TransportOptions) {
    this.#base = server.endsWith("/") ? server : `${server}/`;
    if (!/^https?:\/\//.test(server) || !URL.canParse(server))
      throw this.#error("unexpected", "that is no address; expected http://HOST:PORT");
    this.#headers = token === null ? {} : { authorization: `Bearer ${token}` };
    this.#fetch = own;
  }

  /** @throws ClientError unless the server answered with JSON that is about this request. */
  async send(call: Call): Promise<Reply> {
    const { status, headers, text } = await this.#exchange(call);
    if (status === 401)
      throw this.#error(
        "unauthorized",
        "it asks for a token, or for another one: the option token; on the command line --token or JOBTABLE_AUTH_TOKEN",
      );
    if (status >= 300 && status < 400)
      throw this.#error("unexpected", `it redirects to ${headers.get("location") ?? "elsewhere"}`);
    const body = objectFrom(text);
    if (body === null)
      throw this.#error(
        "unexpected",
        `its answer (${status}) is no JSON; is it a jobtable server?`,
      );
    if (status === 503) throw this.#error("unavailable", wordsOf(body));
    if (status >= 500)
      throw this.#error("unexpected", `${wordsOf(body)} (${status}); its log says more`);
    return { status, text, body, headers };
  }

  /** A reply that this call has no meaning for. */
  unexpected({ method, path }: Call, { status, body }: Reply): ClientError {
    return this.#error("unexpected", `${method} /${path} answered ${status} (${wordsOf(body)})`);
  }

  async #exchange({
    method,
    path,
    body,
    headers,
    extraMs = 0,
  }: Call): Promise<{ status: number; headers: Headers; text: string }> {
    const type = { "content-type": "application/json" };
    try {
      const reply = await this.#fetch(this.#base + path, {
        method,
        redirect: "manual",
        headers: { ...this.#headers, ...(body === undefined ? {} : type), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_LIMIT_MS + extraMs),
      });
      return { status: reply.status, headers: reply.headers, text: await reply.text() };
    } catch (error) {
      throw this.#error("unreachable", reasonOf(error), { cause: error });
    }
  }

  #error(reason: ClientError["reason"], what: string, options?: ErrorOptions): ClientError {
    const address = this.#base.slice(0, -1);
    const lead = reason === "unreachable" ? `can't reach ${address}` : `server ${address}`;
    return new ClientError(reason, `${lead}: ${what}`, options);
  }
}

function objectFrom(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? { ...value }
      : null;
  } catch {
    return null;
  }
}

/** Both shapes of an error: that of the jobs, and the envelope. */
function wordsOf({ error, msg, detail }: Readonly<Record<string, unknown>>): string {
  const parts = [error ?? msg, detail].filter((part) => typeof part === "string");
  return parts.length === 0 ? "no reason given" : parts.join(": ");
}

const REASONS: ReadonlyMap<unknown, string> = new Map([
  ["ECONNREFUSED", "nothing listens there"],
  ["ENOTFOUND", "no such host is known"],
  ["ECONNRESET", "it closed the connection"],
  ["UND_ERR_SOCKET", "it closed the connection"],
]);

/** Of what `fetch` rejects with; the cause has the reason. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === "TimeoutError") return "it did not answer in time";
  const { cause } = error;
  const inner = cause instanceof Error ? cause : error;
  const code = "code" in inner ? inner.code : undefined;
  return REASONS.get(code) ?? (inner.message === "" ? String(code) : inner.message);
}
