/**
 * Turns whatever a handler threw into `ErrorType: message`, storable and bounded. Nothing about the
 * value is trusted: its getters may throw, its name may be a novel, it may be null.
 */
import { isNativeError } from "node:util/types";
import { MAX_ERROR_CHARS, cleanText } from "../job/limits.js";
import { retryWish, type RetryWish } from "./errors.js";

export interface Failure {
  readonly kind: "failed";
  /** `ErrorType: message`, at most MAX_ERROR_CHARS. */
  readonly errorMessage: string;
  readonly retry: RetryWish;
}

/** What can stand before the colon; anything else is not a type's name. */
const TYPE_NAME = /^[A-Za-z_$][\w$.]{0,99}$/;

/** A stack beyond this helps nobody, and many of them fill a log. */
const MAX_STACK_CHARS = 8_000;

export function failure(thrown: unknown): Failure {
  return { kind: "failed", errorMessage: describe(thrown), retry: wishOf(thrown) };
}

/** For ends that the runner itself finds. @param type the `ErrorType`. */
export function failed(type: string, message: string, retry: RetryWish = "default"): Failure {
  return { kind: "failed", errorMessage: cleanText(`${type}: ${message}`, MAX_ERROR_CHARS), retry };
}

/** `ErrorType: message` of anything thrown. */
export function describe(thrown: unknown): string {
  const message = messageOf(thrown);
  return cleanText(
    `${typeNameOf(thrown)}: ${message === "" ? "no message" : message}`,
    MAX_ERROR_CHARS,
  );
}

/** The stack of an error, cut and storable; null where there is none. */
export function stackOf(thrown: unknown): string | null {
  const stack = isErrorLike(thrown) ? textOf(thrown, "stack") : null;
  return stack === null ? null : cleanText(stack, MAX_STACK_CHARS);
}

function wishOf(thrown: unknown): RetryWish {
  try {
    return retryWish(thrown);
  } catch {
    return "default";
  }
}

/** An error of this realm or another, or an object that serves as one. */
function isErrorLike(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  return isNativeError(value) || textOf(value, "message") !== null;
}

function typeNameOf(thrown: unknown): string {
  if (!isErrorLike(thrown)) return "Error";
  const name = textOf(thrown, "name") ?? "Error";
  if (name !== "Error") return TYPE_NAME.test(name) ? name : "Error";
  // `class QuotaExceeded extends Error {}` inherits the name "Error": its class says more.
  const className = classNameOf(thrown);
  return className !== null && className !== "Object" && TYPE_NAME.test(className)
    ? className
    : "Error";
}

function classNameOf(value: object): string | null {
  try {
    const made: unknown = value.constructor;
    return typeof made === "function" ? made.name : null;
  } catch {
    return null;
  }
}

function messageOf(thrown: unknown): string {
  if (typeof thrown === "string") return thrown;
  if (isErrorLike(thrown)) return textOf(thrown, "message") ?? "";
  try {
    if (typeof thrown === "object" && thrown !== null) return JSON.stringify(thrown);
    return String(thrown);
  } catch {
    return `a value of type ${typeof thrown} that can't be shown`;
  }
}

/** A property that is text; null where it is not, or where looking at it throws. */
function textOf(value: object, key: "name" | "message" | "stack"): string | null {
  try {
    const text: unknown = Reflect.get(value, key);
    return typeof text === "string" ? text : null;
  } catch {
    return null;
  }
}
