/** The chance port: everything random takes a `Random`; simulations pass a seeded one. */
import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "./clock.js";

export interface Random {
  /** Uniform in [0, 1). */
  unit(): number;
}

/** Random bytes are drawn a block at a time: one system call serves a thousand draws. */
const BLOCK_BYTES = 8_192;

/** Cryptographically strong, so that ids can't be guessed. */
export function systemRandom(): Random {
  let block = Buffer.alloc(0);
  let offset = 0;
  return {
    unit() {
      if (offset + 4 > block.length) {
        block = randomBytes(BLOCK_BYTES);
        offset = 0;
      }
      const value = block.readUInt32LE(offset) / 2 ** 32;
      offset += 4;
      return value;
    },
  };
}

/** Crockford's base 32, two digits at a time. */
const DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const PAIRS = Array.from(
  { length: 1_024 },
  (_, n) => DIGITS.charAt(n >> 5) + DIGITS.charAt(n & 31),
);

/**
 * Makes 26-character ULIDs that only ever grow within this process, also when the clock steps back
 * (https://github.com/ulid/spec, "Monotonicity"). Of a millisecond's first the lower half of the
 * chance part is drawn from half of its range, so that counting up never carries beyond it.
 */
export function idSource(clock: Clock, random: Random): () => string {
  const draw = (bits: number): number => Math.floor(random.unit() * 2 ** bits);
  let lastMs = -1;
  /** The time, and the upper half of the chance part. */
  let head = "";
  /** Its lower half, of 40 bits. */
  let tail = 0;
  return () => {
    const nowMs = Math.max(0, Math.floor(clock.nowMs()));
    if (nowMs > lastMs) {
      lastMs = nowMs;
      head = base32(nowMs, 5) + base32(draw(20), 2) + base32(draw(20), 2);
      tail = draw(19) * 2 ** 20 + draw(20);
    } else tail += 1;
    return head + base32(tail, 4);
  };
}

/** The lowest digits of a whole number >= 0. */
function base32(value: number, pairs: number): string {
  let text = "";
  let rest = value;
  for (let pair = 0; pair < pairs; pair += 1) {
    text = (PAIRS[rest % 1_024] ?? "") + text;
    rest = Math.floor(rest / 1_024);
  }
  return text;
}

/** `worker-<8 hex>`. */
export function newWorkerId(): string {
  return `worker-${randomUUID().slice(0, 8)}`;
}

/** 12 hex digits that no other process draws: for names of files that must not meet. */
export function newToken(): string {
  return randomBytes(6).toString("hex");
}
