/**
 * Tesseract, loaded once per thread and kept warm: loading takes about a second, reading a page a
 * fraction of one. All of it is local: the program and the language data come from node_modules,
 * and nothing is fetched or cached at run time.
 *
 * tesseract.js runs its program in a thread of its own below this one. So this thread's event loop
 * stays free: progress and the abort signal get through while Tesseract computes. A thread runs one
 * job at a time, hence one engine and one listener.
 *
 * When a run is aborted, or Tesseract crashes or fails to load, the engine is ended and the next
 * run starts a new one. An image that Tesseract refuses leaves the engine as it was.
 */
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Worker as Thread } from "node:worker_threads";
import { createWorker, OEM, type Page, type Worker as Tesseract } from "tesseract.js";

export interface OcrProgress {
  readonly status: string;
  /** 0 to 1, within this status. */
  readonly fraction: number;
}

/** The image can't be decoded: it is cut off, damaged, or of a kind that Tesseract doesn't know. */
export class ImageUnreadable extends Error {
  override readonly name = "ImageUnreadable";
}

/** Tesseract itself failed; the next run starts it anew. */
export class OcrEngineFailed extends Error {
  override readonly name = "OcrEngineFailed";
}

interface Engine {
  readonly tesseract: Promise<Tesseract>;
  /** Rejects when Tesseract can't be loaded, or its thread ends. Never resolves. */
  readonly failed: Promise<never>;
  stop(): Promise<void>;
}

const LANGUAGE = "eng";
const ignore = (): void => undefined;

let warm: Engine | undefined;
let onProgress: (progress: OcrProgress) => void = ignore;

/**
 * Reads the text in `image`, the bytes of a PNG or JPEG file.
 * @throws ImageUnreadable, OcrEngineFailed, or the signal's reason as soon as it is aborted.
 */
export async function recognize(
  image: Buffer,
  signal: AbortSignal,
  listener: (progress: OcrProgress) => void,
): Promise<Page> {
  signal.throwIfAborted();
  let onAbort = ignore;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => {
      reject(new Error("aborted"));
    };
  });
  signal.addEventListener("abort", onAbort, { once: true });
  onProgress = listener;
  const engine = (warm ??= start());
  const endings = [engine.failed, aborted];
  try {
    const tesseract = await Promise.race([engine.tesseract, ...endings]);
    const reading = tesseract.recognize(image, {}, { text: true, blocks: true });
    return (await Promise.race([reading, ...endings])).data;
  } catch (error) {
    if (isUnreadable(error))
      throw new ImageUnreadable("it is cut off, damaged or of an unknown kind");
    await endEngine();
    signal.throwIfAborted();
    throw new OcrEngineFailed(error instanceof Error ? error.message : String(error));
  } finally {
    signal.removeEventListener("abort", onAbort);
    onProgress = ignore;
  }
}

/** tesseract.js rejects with texts, not errors; this is the one for an image that it can't decode. */
function isUnreadable(error: unknown): boolean {
  return typeof error === "string" && error.includes("Error attempting to read image");
}

/** Ends this thread's engine, if it has one; the next run starts a new one. */
export async function endEngine(): Promise<void> {
  const engine = warm;
  warm = undefined;
  await engine?.stop();
}

/**
 * tesseract.js tells of a failed load only through `errorHandler`, and of a crash not at all: its
 * thread is caught as it starts, so that neither leaves a run waiting or a thread behind.
 */
function start(): Engine {
  let thread: Thread | undefined;
  let stopped = false;
  let fail: (error: unknown) => void = ignore;
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(ignore);
  const onThread = (started: Thread): void => {
    thread = started;
    started.once("error", fail);
    started.once("exit", () => {
      fail(new Error("its thread ended"));
    });
    if (stopped) void started.terminate();
  };
  return {
    tesseract: load(onThread, (error) => {
      // Its thread goes on after a failed load, and what it then reports throws in tesseract.js.
      thread?.removeAllListeners("message");
      fail(error);
    }),
    failed,
    async stop() {
      stopped = true;
      await thread?.terminate();
    },
  };
}

async function load(
  onThread: (thread: Thread) => void,
  onFailed: (error: unknown) => void,
): Promise<Tesseract> {
  const require = createRequire(import.meta.url);
  const data = dirname(require.resolve(`@tesseract.js-data/${LANGUAGE}/package.json`));
  let loaded = false;
  process.once("worker", onThread);
  try {
    const tesseract = await createWorker(LANGUAGE, OEM.LSTM_ONLY, {
      langPath: join(data, "4.0.0_best_int"),
      gzip: true,
      cacheMethod: "none",
      logger: ({ status, progress }) => {
        onProgress({ status, fraction: progress });
      },
      errorHandler: (error: unknown) => {
        if (!loaded) onFailed(error);
      },
    });
    loaded = true;
    return tesseract;
  } finally {
    process.off("worker", onThread);
  }
}
