import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { StepLog, type OutputStream } from "./step-log.js";

const gapped = /^([^]*?)\n?\[\.\.\. (\d+) bytes left out \.\.\.\]\n([^]*)$/;

describe("the log of a step", () => {
  it("keeps a character whole that comes in pieces between the other stream's", () => {
    const log = new StepLog();
    const euro = Buffer.from("€");
    log.write("stdout", euro.subarray(0, 1));
    log.write("stderr", Buffer.from("é"));
    log.write("stdout", euro.subarray(1));
    expect(log.end()).toBe("é€");
    expect(log.bytes).toBe(5);
  });

  it("replaces what is no text, and leaves what controls a terminal", () => {
    const log = new StepLog();
    log.write("stdout", Buffer.from("\uFEFFa\0b\u001b[1m\xFF", "latin1"));
    log.write("stdout", Buffer.from([0xe2, 0x82]));
    expect(log.end()).toBe("\uFFFDa\uFFFDb\u001b[1m\uFFFD\uFFFD");
  });

  it("says in a line of its own how many bytes it left out", () => {
    const log = new StepLog(4, 6);
    log.write("stdout", Buffer.from("0123456789"));
    expect(log.end()).toBe("0123456789");
    log.write("stdout", Buffer.from("ab"));
    expect(log.end()).toBe("0123\n[... 2 bytes left out ...]\n6789ab");
  });

  it("is cut between characters", () => {
    const log = new StepLog(4, 4);
    log.write("stdout", Buffer.from("a€😀€b"));
    expect(log.end()).toBe("a€\n[... 4 bytes left out ...]\n€b");
  });

  it("has the beginning and the end of whatever was written, in whatever pieces", () => {
    const piece = fc.record({
      stream: fc.constantFrom<OutputStream>("stdout", "stderr"),
      text: fc.string({ unit: "grapheme", maxLength: 30 }),
      cut: fc.nat(30),
    });
    fc.assert(
      fc.property(fc.array(piece), fc.nat(40), fc.nat(40), (pieces, headBytes, tailBytes) => {
        const log = new StepLog(headBytes, tailBytes);
        for (const { stream, text, cut } of pieces) {
          const bytes = Buffer.from(text);
          log.write(stream, bytes.subarray(0, cut));
          log.write(stream, bytes.subarray(cut));
        }
        const all = Buffer.from(
          pieces
            .map(({ text }) => text)
            .join("")
            .replaceAll("\0", "\uFFFD"),
        );
        const written = pieces.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
        expect(log.bytes).toBe(written);
        const shown = log.end();
        if (all.length <= headBytes + tailBytes) {
          expect(shown).toBe(all.toString());
          return;
        }
        const [, head = "", left = "", tail = ""] = gapped.exec(shown) ?? [];
        const kept = Buffer.byteLength(head) + Buffer.byteLength(tail);
        // The line break before the gap may be the log's own.
        expect([all.length - kept, all.length - kept - 1]).toContain(Number(left));
        expect(all.toString().startsWith(head)).toBe(true);
        expect(all.toString().endsWith(tail)).toBe(true);
        expect(Buffer.byteLength(head)).toBeLessThanOrEqual(headBytes);
        expect(Buffer.byteLength(tail)).toBeLessThanOrEqual(tailBytes);
        // Not more than one character is lost at each side of the cut.
        expect(kept).toBeGreaterThan(headBytes + tailBytes - 8);
      }),
    );
  });
});
