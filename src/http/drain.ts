/**
 * A client may still send its body when the answer is out (it was refused, or nobody asked for a
 * body). What comes is read and dropped, so that a client that writes before it reads gets to see
 * the answer and may go on; but not for ever, and not without end: past the bound the connection is
 * cut. A server that closes meanwhile has taken the connection for one at work, and closes it no more:
 * so it is ended here.
 */
import type { IncomingMessage } from "node:http";
import type { HttpContext } from "./context.js";

/** What is under way on a slow line, or comes from a client that looks up at the end of its file. */
const DRAIN_LIMIT_MS = 5_000;
const DRAIN_LIMIT_BYTES = 64 * 1024 * 1024;

export function drainUnread(
  request: IncomingMessage,
  context: Pick<HttpContext, "clock" | "closing">,
): void {
  if (request.complete || request.readableEnded || !bringsBody(request)) return;
  let leftBytes = DRAIN_LIMIT_BYTES;
  const cut = (): void => {
    request.socket.destroy();
  };
  const cancel = context.clock.timer(DRAIN_LIMIT_MS, cut);
  request.on("data", (chunk: Buffer) => {
    leftBytes -= chunk.length;
    if (leftBytes < 0) cut();
  });
  // After the body's end, and after the connection's.
  request.once("close", () => {
    cancel();
    if (context.closing) request.socket.end();
  });
}

function bringsBody({ headers }: IncomingMessage): boolean {
  const { "content-length": length = "0", "transfer-encoding": encoding } = headers;
  return encoding !== undefined || length !== "0";
}
