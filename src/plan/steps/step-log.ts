/**
 * What a step wrote, bounded: the first 64 KiB and the last 192 KiB of it, and between them a line
 * that says how many bytes were left out. Takes any amount in constant memory and time per byte.
 *
 * Both streams go into one text in the order in which they were read, so each is decoded by itself:
 * a character that comes in two pieces stays whole. Bytes that are no UTF-8, and NUL, become U+FFFD.
 * Sequences that control a terminal stay: who prints the log cleans it.
 */

import { TextDecoder } from "node:util";

export const LOG_HEAD_BYTES = 64 * 1024;
export const LOG_TAIL_BYTES = 192 * 1024;

export type OutputStream = "stdout" | "stderr";

const decoder = (): TextDecoder => new TextDecoder("utf-8", { ignoreBOM: true });

export class StepLog {
  readonly #decoders = { stdout: decoder(), stderr: decoder() };
  readonly #head: Buffer;
  readonly #tail: Ring;
  #headBytes = 0;
  #bytes = 0;

  constructor(headBytes = LOG_HEAD_BYTES, tailBytes = LOG_TAIL_BYTES) {
    this.#head = Buffer.alloc(headBytes);
    this.#tail = new Ring(tailBytes);
  }

  /** As they were written. */
  get bytes(): number {
    return this.#bytes;
  }

  write(stream: OutputStream, bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    this.#append(this.#decoders[stream].decode(bytes, { stream: true }));
  }

  /** No more is written afterwards: what began a character and did not end it is none. */
  end(): string {
    for (const decoder of Object.values(this.#decoders)) this.#append(decoder.decode());
    return this.text();
  }

  /** What there is so far, without the character that is still under way. */
  text(): string {
    const head = this.#head.subarray(0, this.#headBytes);
    const tail = this.#tail.contents();
    if (this.#tail.dropped === 0) return Buffer.concat([head, tail]).toString();
    const first = head.subarray(0, wholeEnd(head));
    const last = tail.subarray(wholeStart(tail));
    const left = this.#tail.dropped + (head.length - first.length) + (tail.length - last.length);
    const [before, after] = [first.toString(), last.toString()];
    const gap = `[... ${left} bytes left out ...]\n`;
    return `${before}${before === "" || before.endsWith("\n") ? "" : "\n"}${gap}${after}`;
  }

  #append(text: string): void {
    const encoded = Buffer.from(text.replaceAll("\0", "\uFFFD"));
    const forHead = Math.min(encoded.length, this.#head.length - this.#headBytes);
    encoded.copy(this.#head, this.#headBytes, 0, forHead);
    this.#headBytes += forHead;
    this.#tail.push(encoded.subarray(forHead));
  }
}

/** The newest bytes of many. */
class Ring {
  readonly #bytes: Buffer;
  #next = 0;
  #total = 0;

  constructor(size: number) {
    this.#bytes = Buffer.alloc(size);
  }

  get dropped(): number {
    return Math.max(0, this.#total - this.#bytes.length);
  }

  push(added: Buffer): void {
    const size = this.#bytes.length;
    this.#total += added.length;
    const kept = added.subarray(Math.max(0, added.length - size));
    const toEnd = Math.min(kept.length, size - this.#next);
    kept.copy(this.#bytes, this.#next, 0, toEnd);
    kept.copy(this.#bytes, 0, toEnd);
    this.#next = size === 0 ? 0 : (this.#next + kept.length) % size;
  }

  contents(): Buffer {
    if (this.dropped === 0) return this.#bytes.subarray(0, this.#total);
    return Buffer.concat([this.#bytes.subarray(this.#next), this.#bytes.subarray(0, this.#next)]);
  }
}

const isContinuation = (byte: number | undefined): boolean =>
  byte !== undefined && (byte & 0xc0) === 0x80;

/** Where the last whole character of valid UTF-8, which may be cut at its end, ends. */
function wholeEnd(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start >= 0 && isContinuation(bytes[start])) start -= 1;
  const lead = bytes[start];
  if (lead === undefined || lead < 0x80) return start + 1;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  return start + length <= bytes.length ? start + length : start;
}

/** Where the first whole character of valid UTF-8, which may be cut at its start, begins. */
function wholeStart(bytes: Buffer): number {
  let start = 0;
  while (isContinuation(bytes[start])) start += 1;
  return start;
}
