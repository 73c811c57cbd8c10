import { expect, test } from "vitest";
import { changesMessages, changesPrefix, probeMessage, readMessage } from "./messages.js";

const ORIGIN = "0a1b2c3d";

test("ids come back as they were sent, in messages that the server takes", () => {
  const jobIds = Array.from({ length: 1_000 }, (_, at) => String(at).padStart(26, "0"));
  const messages = changesMessages(ORIGIN, false, jobIds);
  expect(Math.max(...messages.map((message) => message.length))).toBeLessThan(8_000);
  const received = messages.map(readMessage);
  expect(received.every((one) => one?.origin === ORIGIN)).toBe(true);
  expect(
    received.flatMap((one) => (one?.message.kind === "changes" ? one.message.jobIds : [])),
  ).toEqual(jobIds);
});

test("no ids, no message; a message of work needs none", () => {
  expect(changesMessages(ORIGIN, true, [])).toEqual([]);
  expect(readMessage(changesPrefix(ORIGIN, true))).toEqual({
    origin: ORIGIN,
    message: { kind: "changes", work: true, jobIds: [] },
  });
});

test("a probe carries its number", () => {
  expect(readMessage(probeMessage(ORIGIN, 7))).toEqual({
    origin: ORIGIN,
    message: { kind: "probe", number: 7 },
  });
});

test.each(["", "x", ORIGIN, `${ORIGIN}?`, `${ORIGIN}Zabc`])("%j is dropped", (payload) => {
  expect(readMessage(payload)).toBeNull();
});
