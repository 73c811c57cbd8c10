/** `fetch` that asks an app without a socket between them. */
import type { FastifyInstance } from "fastify";
import type { Fetch } from "../../src/client/transport.js";

export function injectedFetch(app: FastifyInstance): Fetch {
  return async (url, init) => {
    const { pathname, search } = new URL(url);
    const reply = await app.inject({
      method: init.method === "POST" || init.method === "DELETE" ? init.method : "GET",
      url: pathname + search,
      headers: { ...(init.headers as Record<string, string>), host: "test" },
      ...(typeof init.body === "string" ? { body: init.body } : {}),
    });
    const headers = Object.entries(reply.headers).map(
      ([name, value]) => [name, String(value)] as [string, string],
    );
    return new Response(reply.body, { status: reply.statusCode, headers });
  };
}
