/**
 * Where a command reads and prints. Answers go to standard output, one trouble per line to standard
 * error. A reader of our output that goes away (`| head`, a terminal that is closed) is no trouble.
 */
import type { Readable, Writable } from "node:stream";
import { ENDING, LiveText, type Signals } from "./live-text.js";
import { wantsColour, type Look } from "./look.js";
import { clean } from "./text.js";

export interface Terminal {
  /** One answer; the line's end is added. */
  print(text: string): void;
  /** One line to standard error. */
  complain(text: string): void;
  /** Text of several lines to standard error. */
  explain(text: string): void;
  /** Bytes as they are, to standard output. */
  pass(bytes: Uint8Array): void;
  /**
   * The same, to either, for what may come without end: false, and they are dropped, while its reader
   * leaves more than a megabyte waiting.
   */
  offer(bytes: Uint8Array, to: "stdout" | "stderr"): boolean;
  /** How what is printed may look. */
  readonly look: Look;
  /** An answer that changes while someone watches standard output; null where nobody does. */
  liveAnswer(): LiveText | null;
  /** What goes on meanwhile, for someone who watches standard error; null where nobody does. */
  liveStatus(): LiveText | null;
  /** One line to standard error if a signal ends the process meanwhile. @returns forgets it. */
  lastWords(text: string): () => void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** Resolves when what was printed has been handed on, so that the process may end. */
  flush(): Promise<void>;
}

/** What a reader who takes a break finds when it goes on; more is dropped, not kept. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** A terminal's own streams have the last two. */
type Output = Writable & { readonly isTTY?: boolean; readonly columns?: number };

export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Output;
  readonly stderr: Output;
}

/** @param signals where those arrive that end the process; null: nowhere. */
export function createTerminal(
  { stdin, stdout, stderr }: Streams,
  env: Readonly<Record<string, string | undefined>> = {},
  signals: Signals | null = null,
): Terminal {
  for (const stream of [stdout, stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
    });
  const live = (stream: Output): LiveText | null =>
    stream.isTTY === true && env["TERM"] !== "dumb" ? new LiveText(stream, signals) : null;
  const complain = (text: string): void => void stderr.write(`jobtable: ${oneLine(text)}\n`);
  return {
    print: (text) => void stdout.write(`${text}\n`),
    complain,
    pass: (bytes) => void stdout.write(bytes),
    offer(bytes, to) {
      const stream = to === "stdout" ? stdout : stderr;
      if (stream.writableLength > MAX_WAITING_BYTES) return false;
      stream.write(bytes);
      return true;
    },
    explain: (text) => void stderr.write(`${text}\n`),
    get look() {
      const isTerminal = stdout.isTTY === true;
      return {
        columns: isTerminal ? (stdout.columns ?? null) : null,
        colour: wantsColour(env, isTerminal),
      };
    },
    liveAnswer: () => live(stdout),
    liveStatus: () => live(stderr),
    lastWords(text) {
      const forget = (): void => {
        for (const signal of ENDING) signals?.off(signal, say);
      };
      // With no listener left, the signal does what it does.
      const say = (signal: NodeJS.Signals): void => {
        forget();
        complain(text);
        signals?.kill(signals.pid, signal);
      };
      for (const signal of ENDING) signals?.on(signal, say);
      return forget;
    },
    async readInput() {
      const chunks: Buffer[] = [];
      for await (const chunk of stdin as AsyncIterable<Buffer | string>)
        chunks.push(Buffer.from(chunk));
      return Buffer.concat(chunks).toString("utf8");
    },
    async flush() {
      await Promise.all([stdout, stderr].map(flushed));
    },
  };
}

/** Settles also when the stream is broken. */
function flushed(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || !stream.writable) resolve();
    else stream.write("", () => resolve());
  });
}

function oneLine(text: string): string {
  return clean(text.trim().replaceAll(/\s*[\r\n]+\s*/g, " "));
}
