import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { LiveText } from "./live-text.js";

function screen(columns: number, rows: number): { live: LiveText; written: () => string } {
  let written = "";
  const live = new LiveText({ write: (text) => (written += text), columns, rows });
  return {
    live,
    written() {
      const text = written;
      written = "";
      return text;
    },
  };
}

test("each text takes the place of the one before", () => {
  const { live, written } = screen(80, 24);
  live.show("a\nb");
  expect(written()).toBe("a\nb");
  live.show("c");
  expect(written()).toBe("\r\u001b[1A\u001b[Jc");
  live.show("c");
  expect(written()).toBe("");
  live.clear();
  expect(written()).toBe("\r\u001b[J");
  live.clear();
  expect(written()).toBe("");
});

test.each(["SIGINT", "SIGTERM"] as const)(
  "%s takes it off the screen, then ends the process",
  (signal) => {
    const said: string[] = [];
    const process = Object.assign(new EventEmitter(), {
      pid: 42,
      kill: (pid: number, sent: string) => {
        // Nobody is left who would catch it.
        said.push(`${String(process.listenerCount(sent))} ${sent} ${String(pid)}`);
      },
    });
    const live = new LiveText({ write: (text) => said.push(text) }, process);
    live.show("pending");
    live.show("running");
    process.emit(signal, signal);
    expect(said).toEqual(["pending", "\r\u001b[Jrunning", "\r\u001b[J", `0 ${signal} 42`]);
  },
);

test("what is not on the screen leaves signals alone", () => {
  const process = Object.assign(new EventEmitter(), { pid: 42, kill: () => undefined });
  const live = new LiveText({ write: () => undefined }, process);
  expect(process.eventNames()).toEqual([]);
  live.show("pending");
  expect(process.eventNames()).toEqual(["SIGINT", "SIGTERM"]);
  live.clear();
  expect(process.eventNames()).toEqual([]);
});

test("no line wraps, and what does not fit is left out, or the way back would be lost", () => {
  const { live, written } = screen(5, 3);
  live.show("日本語\nb\nc\nd");
  expect(written()).toBe("日…\nb");
  live.clear();
  expect(written()).toBe("\r\u001b[1A\u001b[J");
});
