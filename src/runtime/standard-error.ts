/**
 * Standard error, for a log: lines leave in order, those of a turn together, and hold up nobody. Where
 * it can't be written, because its terminal or its reader is gone or its disk is full, each line tries
 * again, and none is a fault: to log that fault would be the next one. What waits is bounded; lines
 * beyond that are dropped. What waits at the process's end is written then, or given up where that fails.
 */
import { write, writeSync } from "node:fs";
import { codeOf } from "./error-code.js";
import { atTurnEnd } from "./turn.js";

const FD = 2;
const MAX_WAITING_CHARS = 16 * 1024 * 1024;
/** Its reader is slow. */
const BUSY_PAUSE_MS = 20;
/** A second: the process is to end. */
const MOST_BUSY_PAUSES = 50;

class StandardError {
  #lines: string[] = [];
  #chars = 0;
  /** What is being written, or was when it failed. */
  #text = Buffer.alloc(0);
  #isUnderWay = false;
  #isDue = false;
  #isHeard = false;

  write(line: string): void {
    if (!this.#isHeard) {
      this.#isHeard = true;
      process.on("exit", () => {
        this.#writeRest();
      });
    }
    if (this.#chars > MAX_WAITING_CHARS) return;
    this.#lines.push(line);
    this.#chars += line.length;
    if (this.#isDue || this.#isUnderWay) return;
    this.#isDue = true;
    atTurnEnd(() => {
      this.#isDue = false;
      this.#writeNext();
    });
  }

  #writeNext(): void {
    if (this.#isUnderWay) return;
    if (this.#text.length === 0) this.#text = this.#take();
    if (this.#text.length === 0) return;
    this.#isUnderWay = true;
    write(FD, this.#text, (error, written) => {
      this.#isUnderWay = false;
      if (error === null) {
        this.#text = this.#text.subarray(written);
        this.#writeNext();
      } else if (isBusy(error)) setTimeout(() => this.#writeNext(), BUSY_PAUSE_MS).unref();
    });
  }

  #writeRest(): void {
    let rest = this.#take();
    if (!this.#isUnderWay) rest = Buffer.concat([this.#text, rest]);
    for (let pauses = 0; rest.length > 0 && pauses < MOST_BUSY_PAUSES;)
      try {
        rest = rest.subarray(writeSync(FD, rest));
      } catch (error) {
        if (!isBusy(error)) return;
        pauses += 1;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_PAUSE_MS);
      }
  }

  #take(): Buffer<ArrayBuffer> {
    const text = Buffer.from(this.#lines.join(""));
    this.#lines = [];
    this.#chars = 0;
    return text;
  }
}

function isBusy(error: unknown): boolean {
  return codeOf(error) === "EAGAIN";
}

export const standardError = new StandardError();
