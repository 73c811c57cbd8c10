/**
 * One stream of a command's output. A FIFO, since what `spawn` calls a pipe is a socket, on which
 * `echo x > /dev/stderr` fails. Only open descriptors are left of it: nobody else can come in.
 */
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";

export interface Fifos {
  readonly out: string;
  readonly err: string;
}

export class OutputPipe {
  /** For the command; closed here with `closeWriter`. */
  readonly writer: number;
  /** Resolves when all processes that could write are gone, or `destroy` was called. */
  readonly ended: Promise<void>;
  readonly #reader: Socket;
  #writerOpen = true;

  /**
   * Opens the FIFO and removes its name.
   * @param read gets what is written, in order; the bytes are its own.
   * @throws when the system has no room.
   */
  constructor(fifo: string, read: (bytes: Buffer) => void) {
    let reader: number | undefined;
    try {
      // First the reading end, without waiting for a writer; then the other finds its reader.
      reader = openSync(fifo, constants.O_RDONLY | constants.O_NONBLOCK);
      this.writer = openSync(fifo, constants.O_WRONLY);
    } catch (error) {
      if (reader !== undefined) closeSync(reader);
      throw error;
    } finally {
      rmSync(fifo, { force: true });
    }
    this.#reader = new Socket({ fd: reader, readable: true, writable: false });
    this.#reader.on("data", read);
    this.#reader.on("error", () => undefined);
    this.ended = new Promise((resolve) => {
      this.#reader.once("close", () => resolve());
    });
  }

  closeWriter(): void {
    if (this.#writerOpen) closeSync(this.writer);
    this.#writerOpen = false;
  }

  destroy(): void {
    this.closeWriter();
    this.#reader.destroy();
  }
}
