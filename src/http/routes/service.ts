/** What operators and their machines ask: alive, ready, figures, and the description of it all. */
import type { FastifyInstance } from "fastify";
import { NOT_REACHED, type HttpContext } from "../context.js";
import type { Only } from "../paths.js";
import { OPERATIONS } from "../operations.js";
import type { Replies } from "../reply.js";

export function serviceRoutes(
  app: FastifyInstance,
  context: HttpContext,
  replies: Replies,
  only: Only,
): void {
  const { metrics } = context;
  const path = { shape: "envelope", isPublic: true, head: true } as const;
  only(
    { url: "/healthz", ...path, isEarly: true },
    {
      GET: {
        schema: OPERATIONS.healthz,
        handler(_, reply) {
          replies.answer(reply, 200, '{"status":"ok"}');
        },
      },
    },
  );
  only(
    { url: "/ready", ...path, isEarly: true },
    {
      GET: {
        schema: OPERATIONS.ready,
        async handler(_, reply) {
          const { ready, reason } = await readiness(context);
          const why = { status: "not ready", reason: reason ?? "not ready" };
          if (ready) replies.answer(reply, 200, '{"status":"ready"}');
          else replies.answer(reply, 503, JSON.stringify(why));
        },
      },
    },
  );
  only(
    { url: "/metrics", ...path },
    {
      GET: {
        schema: OPERATIONS.metrics,
        async handler(_, reply) {
          const text = await metrics.scrape(context.engine);
          replies.answer(reply, 200, text, { type: metrics.registry.contentType });
        },
      },
    },
  );
  let document: string | null = null;
  only(
    { url: "/openapi.json", ...path },
    {
      GET: {
        schema: OPERATIONS.openapi,
        handler(_, reply) {
          document ??= JSON.stringify(app.swagger());
          replies.answer(reply, 200, document);
        },
      },
    },
  );
}

/** An engine that can't even say why is not ready either; the message of an unknown error is not for the public. */
async function readiness(
  context: HttpContext,
): Promise<{ readonly ready: boolean; readonly reason: string | null }> {
  const engine = context.engineIfThere();
  if (engine === null) return { ready: false, reason: NOT_REACHED };
  try {
    return await engine.ready();
  } catch {
    return { ready: false, reason: "the readiness check failed" };
  }
}
