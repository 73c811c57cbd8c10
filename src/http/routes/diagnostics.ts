/** What someone on call asks: is it well, and if not, what is wrong and what to do. */
import type { HttpContext } from "../context.js";
import { diagnosticsJson } from "../diagnostics-json.js";
import { OPERATIONS } from "../operations.js";
import type { Only } from "../paths.js";
import type { Replies } from "../reply.js";

export function diagnosticsRoute(context: HttpContext, replies: Replies, only: Only): void {
  const { settings } = context;
  only(
    { url: "/diagnostics", shape: "envelope" },
    {
      GET: {
        schema: OPERATIONS.diagnostics,
        async handler(_, reply) {
          const diagnosis = await context.engine.diagnose();
          replies.answer(reply, 200, diagnosticsJson(diagnosis, settings.asyncEnabled));
        },
      },
    },
  );
}
