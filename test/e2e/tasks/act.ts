/** A task whose input says how it ends, so that a test drives every ending without a clock. */
import { once } from "node:events";
import { createServer } from "node:net";
import { task } from "jobtable";

export interface Act {
  /** Returned as it is. */
  readonly say?: string;
  /** Fails with this message. */
  readonly fail?: string;
  /** Goes on until it is told to stop. */
  readonly hold?: boolean;
  /** Goes on for ever, whatever it is told. */
  readonly deaf?: boolean;
  /** So does this, and lets nothing else run in its thread. */
  readonly spin?: boolean;
  /** Reported at the start. */
  readonly progress?: unknown;
}

export default task<Act, { said: string }>({
  name: "act",
  async run({ say = "", fail, hold, deaf, spin, progress }, context) {
    const { signal } = context;
    if (progress !== undefined) context.progress(progress);
    if (fail !== undefined) throw new Error(fail);
    while (spin);
    // What it waits for would keep a process alive, too.
    if (deaf) await once(createServer().listen(0, "127.0.0.1"), "close");
    if (hold)
      await new Promise((_, reject) => {
        const stop = (): void => reject(new Error("told to stop"));
        if (signal.aborted) stop();
        else signal.addEventListener("abort", stop, { once: true });
      });
    return { said: say };
  },
});
