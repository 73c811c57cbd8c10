/** HTTP calls to servers that may be killed at any moment. */
import { Agent, request } from "node:http";
import { systemClock } from "../../../src/runtime/clock.js";

export interface Reply {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

/** The server was not there (`refused`), or the connection broke and nobody knows what became of the call. */
export class Unanswered extends Error {
  readonly refused: boolean;
  /** The answer did not come in time. */
  readonly late: boolean;

  constructor(error: NodeJS.ErrnoException, late: boolean) {
    super(error.message);
    this.refused = error.code === "ECONNREFUSED";
    this.late = late;
  }
}

export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly limitMs: number;
}

export class Client {
  readonly #agent = new Agent({ keepAlive: true });

  /** @throws Unanswered */
  call(url: string, { method, path, body, headers, limitMs }: Call): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const text = body === undefined ? undefined : JSON.stringify(body);
      let late = false;
      const sent = request(
        url + path,
        {
          method,
          agent: this.#agent,
          headers: {
            ...headers,
            ...(text === undefined ? {} : { "content-type": "application/json" }),
          },
        },
        (reply) => {
          let received = "";
          reply.setEncoding("utf8");
          reply.on("data", (chunk: string) => (received += chunk));
          reply.on("error", fail);
          reply.on("end", () => {
            cancelTimer();
            resolve({ status: reply.statusCode ?? 0, json: objectIn(received) });
          });
        },
      );
      const fail = (error: Error): void => {
        cancelTimer();
        reject(new Unanswered(error, late));
      };
      const cancelTimer = systemClock.timer(limitMs, () => {
        late = true;
        sent.destroy(new Error(`no answer within ${String(limitMs)} ms`));
      });
      sent.on("error", fail);
      sent.end(text);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
