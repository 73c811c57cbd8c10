/** The chance port: everything random takes a `Random`; simulations pass a seeded one. */
import { randomBytes, randomUUID } from "node:crypto";
import { monotonicFactory } from "ulid";
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

/**
 * Makes 26-character ULIDs that only ever grow within this process, also when the clock steps back
 * (https://github.com/ulid/spec, "Monotonicity").
 */
export function idSource(clock: Clock, random: Random): () => string {
  const next = monotonicFactory(() => random.unit());
  return () => next(clock.nowMs());
}

/** `worker-<8 hex>`. */
export function newWorkerId(): string {
  return `worker-${randomUUID().slice(0, 8)}`;
}

/** 12 hex digits that no other process draws: for names of files that must not meet. */
export function newToken(): string {
  return randomBytes(6).toString("hex");
}
