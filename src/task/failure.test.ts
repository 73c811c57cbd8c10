import { runInNewContext } from "node:vm";
import { describe as suite, expect, it } from "vitest";
import { MAX_ERROR_CHARS } from "../job/limits.js";
import { Discard, Retry } from "./errors.js";
import { describe, failed, failure, stackOf } from "./failure.js";

class QuotaExceeded extends Error {}
const hostile = {
  get name(): never {
    throw new Error("name");
  },
  get message(): never {
    throw new Error("message");
  },
  get constructor(): never {
    throw new Error("constructor");
  },
};
const hostileError = Object.defineProperties(new Error("x"), {
  // First: V8 reads the name to make the stack that this replaces.
  stack: {
    get: () => {
      throw new Error("stack");
    },
  },
  name: {
    get: () => {
      throw new Error("name");
    },
  },
  message: {
    get: () => {
      throw new Error("message");
    },
  },
});
const everythingThrows: unknown = new Proxy(
  {},
  {
    get: () => {
      throw new Error("get");
    },
    has: () => {
      throw new Error("has");
    },
    getPrototypeOf: () => {
      throw new Error("prototype");
    },
    ownKeys: () => {
      throw new Error("keys");
    },
  },
);

suite("describe", () => {
  it.each([
    [new TypeError("bad"), "TypeError: bad"],
    [new QuotaExceeded("full"), "QuotaExceeded: full"],
    [Object.assign(new Error("x"), { name: "Custom" }), "Custom: x"],
    [Object.assign(new Error("x"), { name: "two words\n: x" }), "Error: x"],
    [Object.assign(new Error("x"), { name: 5 }), "Error: x"],
    [new Error(""), "Error: no message"],
    [new DOMException("stopped", "AbortError"), "AbortError: stopped"],
    [runInNewContext("new RangeError('far')"), "RangeError: far"],
    [{ name: "Fault", message: "like an error" }, "Fault: like an error"],
    [{ message: "like an error" }, "Error: like an error"],
    ["a string", "Error: a string"],
    ["", "Error: no message"],
    [null, "Error: null"],
    [undefined, "Error: undefined"],
    [42, "Error: 42"],
    [10n, "Error: 10"],
    [Symbol("s"), "Error: Symbol(s)"],
    [{ code: 7 }, 'Error: {"code":7}'],
    [hostileError, "Error: no message"],
    [everythingThrows, "Error: a value of type object that can't be shown"],
  ])("%#", (thrown, message) => {
    expect(describe(thrown)).toBe(message);
  });

  it("survives getters that throw", () => {
    expect(describe(hostile)).toMatch(/^Error: /);
  });

  it("is bounded and storable", () => {
    const message = describe(new Error(`a\0b\ud800${"x".repeat(5_000)}`));
    expect(message).toHaveLength(MAX_ERROR_CHARS);
    expect(message).toContain("a\uFFFDb\uFFFD");
  });
});

suite("failure", () => {
  it.each([
    [new Error("x"), "default"],
    [new Retry("x"), "default"],
    [new Retry("x", { afterMs: 0 }), { afterMs: 0 }],
    [new Retry("x", { afterMs: 1_500 }), { afterMs: 1_500 }],
    [new Discard("x"), "never"],
    [null, "default"],
    [everythingThrows, "default"],
    [{ [Symbol.for("jobtable.disposition")]: "retry", afterMs: -1 }, "default"],
    [{ [Symbol.for("jobtable.disposition")]: "retry", afterMs: "soon" }, "default"],
    [{ [Symbol.for("jobtable.disposition")]: "discard" }, "never"],
    [{ [Symbol.for("jobtable.disposition")]: "dance" }, "default"],
  ])("reads the wish of %#", (thrown, retry) => {
    expect(failure(thrown).retry).toEqual(retry);
  });

  it("keeps the message of Retry and Discard", () => {
    expect(failure(new Retry("busy")).errorMessage).toBe("Retry: busy");
    expect(failure(new Discard("bad file")).errorMessage).toBe("Discard: bad file");
  });

  it("writes the runner's own ends alike", () => {
    expect(failed("ThreadExit", "gone")).toEqual({
      kind: "failed",
      errorMessage: "ThreadExit: gone",
      retry: "default",
    });
  });
});

suite("Retry", () => {
  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, 400 * 86_400_000])("refuses %d", (afterMs) => {
    expect(() => new Retry("x", { afterMs })).toThrow(/afterMs must be 0 to \d+ ms, got/);
  });
});

suite("stackOf", () => {
  it("gives a bounded stack, or none", () => {
    expect(stackOf(new Error("x"))).toContain("failure.test.ts");
    expect(stackOf(Object.assign(new Error("x"), { stack: "y".repeat(20_000) }))).toHaveLength(
      8_000,
    );
    expect(stackOf("x")).toBeNull();
    expect(stackOf(hostileError)).toBeNull();
  });
});
