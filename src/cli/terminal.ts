/**
 * Where a command reads and prints. Answers go to standard output, one trouble per line to standard
 * error. A reader of our output that goes away (`| head`) is no trouble.
 */
import type { Readable, Writable } from "node:stream";

export interface Terminal {
  /** One answer; the line's end is added. */
  print(text: string): void;
  /** One line to standard error. */
  complain(text: string): void;
  /** Text of several lines to standard error. */
  explain(text: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** Resolves when what was printed has been handed on, so that the process may end. */
  flush(): Promise<void>;
}

interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

export function createTerminal({ stdin, stdout, stderr }: Streams): Terminal {
  for (const stream of [stdout, stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  return {
    print: (text) => void stdout.write(`${text}\n`),
    complain: (text) => void stderr.write(`jobtable: ${oneLine(text)}\n`),
    explain: (text) => void stderr.write(`${text}\n`),
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
  return text.trim().replaceAll(/\s*[\r\n]+\s*/g, " ");
}
