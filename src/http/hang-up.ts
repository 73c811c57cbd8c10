/** Tells a request that is being answered slowly that its client has gone, and gives all back afterwards. */
import type { FastifyReply } from "fastify";

export interface HangUp {
  readonly controller: AbortController;
  /** Whether the client closed the connection; an abort by anyone else is none. */
  gone(): boolean;
  /** Removes the listener. To be called in `finally`. */
  release(): void;
}

export function onHangUp(reply: FastifyReply): HangUp {
  const controller = new AbortController();
  const { raw } = reply;
  const abort = (): void => {
    controller.abort();
  };
  raw.on("close", abort);
  return {
    controller,
    gone: () => raw.destroyed || raw.closed,
    release() {
      raw.removeListener("close", abort);
    },
  };
}
