/** Loaded with `--import` beside `--expose-gc`: SIGUSR2 collects garbage. Signals come to the main thread alone. */
import { isMainThread } from "node:worker_threads";

if (isMainThread)
  process.on("SIGUSR2", () => {
    globalThis.gc?.();
    globalThis.gc?.();
  });
