/** A task whose input says how it ends, so that a test drives every ending without a clock. */
import { task } from "jobtable";

interface Act {
  /** Returned as it is. */
  readonly say?: string;
  /** Fails with this message. */
  readonly fail?: string;
  /** Goes on until it is told to stop. */
  readonly hold?: boolean;
  /** Goes on for ever, whatever it is told. */
  readonly deaf?: boolean;
}

export default task<Act, { said: string }>({
  name: "act",
  async run({ say = "", fail, hold, deaf }, { signal }) {
    if (fail !== undefined) throw new Error(fail);
    if (deaf) await new Promise(() => undefined);
    if (hold)
      await new Promise((_, reject) => {
        const stop = (): void => reject(new Error("told to stop"));
        if (signal.aborted) stop();
        else signal.addEventListener("abort", stop, { once: true });
      });
    return { said: say };
  },
});
