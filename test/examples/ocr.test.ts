import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it, vi } from "vitest";
import { endEngine } from "../../examples/ocr/engine.js";
import ocr from "../../examples/tasks/ocr.js";
import { contextOf } from "./context.js";
import { encodePng, pngHeader, textPng } from "./png.js";

// Tesseract loads within a second, and within ten on a machine that is busy with other tests.
vi.setConfig({ testTimeout: 120_000 });

afterAll(endEngine);

const sample = (name: string): Buffer =>
  readFileSync(new URL(`../../examples/images/${name}`, import.meta.url));

const read = (image: Buffer, ctx = contextOf()) =>
  ocr.run({ img_data: image.toString("base64") }, ctx);

/** The schema's complaints about an input; empty when there are none. */
async function issuesOf(input: unknown): Promise<string[]> {
  const result = await ocr.input?.["~standard"].validate(input);
  return (result?.issues ?? []).map(({ message }) => message);
}

const issueOf = async (img_data: string): Promise<string> => (await issuesOf({ img_data })).join();

describe("reading", () => {
  it("reads a receipt", async () => {
    const { text, confidence, words } = await read(sample("receipt.png"));
    expect(text).toContain("CORNER BAKERY");
    expect(text).toContain("Sourdough loaf 4.80");
    expect(text).toContain("TOTAL 16.55");
    expect(confidence).toBeGreaterThan(80);
    expect(confidence).toBeLessThanOrEqual(100);
    const total = words.find((word) => word.text === "TOTAL");
    expect(total?.confidence).toBeGreaterThan(80);
    expect(total?.box.x0).toBeLessThan(total?.box.x1 ?? 0);
    expect(total?.box.y0).toBeLessThan(total?.box.y1 ?? 0);
  });

  it("reads a page of two paragraphs", async () => {
    const { text, words } = await read(sample("page.png"));
    const [first, second] = text.split("\n\n");
    expect(first).toMatch(
      /^A queue does not make slow work fast\..*\ndone when a worker is free\.$/s,
    );
    expect(second).toMatch(/^What was written down must not be lost\..*\nwork is done then\.\s*$/s);
    expect(words).toHaveLength(71);
  });

  it("reads a noisy, tilted photograph", async () => {
    const { text } = await read(sample("sign.jpg"));
    expect(text).toContain("PLATFORM 7");
    expect(text).toContain("Night train to Vienna 22:45");
  });

  it("reads an image that nobody had seen before", async () => {
    const { text } = await read(textPng("HELLO HOTEL 42", 6));
    expect(text.trim()).toBe("HELLO HOTEL 42");
  });

  it("finds nothing on a blank page and in a single pixel", async () => {
    for (const blank of [encodePng(400, 300, () => 255), encodePng(1, 1, () => 255)])
      expect(await read(blank)).toEqual({ text: "", confidence: 0, words: [] });
  });

  it("gives what its output schema promises", async () => {
    const output = await read(sample("sign.jpg"));
    expect(await ocr.output?.["~standard"].validate(output)).toEqual({ value: output });
  });
});

describe("on the way", () => {
  it("reports its progress", async () => {
    await endEngine();
    const seen: unknown[] = [];
    await read(
      sample("receipt.png"),
      contextOf(undefined, (value) => seen.push(value)),
    );
    expect(seen).toContainEqual({ status: "loading language traineddata", fraction: 1 });
    expect(seen).toContainEqual({ status: "recognizing text", fraction: 1 });
  });

  it("ends at once when it is aborted, and reads again afterwards", async () => {
    const stop = new AbortController();
    const reason = new Error("cancelled");
    const ctx = contextOf(stop.signal, (value) => {
      if (JSON.stringify(value).includes("recognizing")) stop.abort(reason);
    });
    await expect(read(sample("page.png"), ctx)).rejects.toBe(reason);
    expect((await read(textPng("HELLO", 6))).text.trim()).toBe("HELLO");
  });

  it("ends when it is aborted while the engine loads, or before", async () => {
    await endEngine();
    const stop = new AbortController();
    const ctx = contextOf(stop.signal, () => {
      stop.abort();
    });
    await expect(read(sample("page.png"), ctx)).rejects.toThrow(/aborted/i);
    await expect(read(sample("page.png"), ctx)).rejects.toThrow(/aborted/i);
    expect((await read(textPng("HELLO", 6))).text.trim()).toBe("HELLO");
  });
});

describe("images that can't be decoded", () => {
  const page = sample("page.png");
  const sign = sample("sign.jpg");
  const damaged = (image: Buffer): Buffer => {
    const copy = Buffer.from(image);
    for (let at = 700; at < copy.length; at += 97) copy.writeUInt8(copy.readUInt8(at) ^ 0xff, at);
    return copy;
  };

  it.each([
    ["a PNG that is cut off", page.subarray(0, 2_000)],
    ["a PNG that is only a header", pngHeader(100, 100)],
    ["a damaged PNG", damaged(page)],
    ["a JPEG that is cut off", sign.subarray(0, 9_000)],
    ["a damaged JPEG", damaged(sign)],
  ])("%s is unreadable, and the next image is read", async (_, image) => {
    const reading = read(image);
    await expect(reading).rejects.toThrow("it is cut off, damaged or of an unknown kind");
    await expect(reading).rejects.toHaveProperty("name", "ImageUnreadable");
    expect((await read(textPng("HELLO", 6))).text.trim()).toBe("HELLO");
  });
});

describe("input", () => {
  const base64 = sample("sign.jpg").toString("base64");
  const png = (width: number, height: number): string =>
    pngHeader(width, height).toString("base64");

  it("takes PNG and JPEG, bare or as a data URL", async () => {
    expect(await issueOf(base64)).toBe("");
    expect(await issueOf(`data:image/jpeg;base64,${base64}`)).toBe("");
    expect(await issueOf(sample("page.png").toString("base64"))).toBe("");
    expect(await issuesOf({ img_data: base64, lang: "eng" })).toEqual([]);
    const url = `data:image/png;base64,${textPng("HELLO", 6).toString("base64")}`;
    expect((await ocr.run({ img_data: url }, contextOf())).text.trim()).toBe("HELLO");
  });

  it.each([
    ["nothing", "", "the image is empty"],
    ["an empty data URL", "data:image/png;base64,", "the image is empty"],
    ["garbage", "aGVs*G8=", 'not base64: unexpected "*" at character 5'],
    ["a line break", "aGVs\nbG8", 'not base64: unexpected "\\n" at character 5'],
    ["padding inside", "aGV=bG8=", 'not base64: unexpected "=" at character 4'],
    ["the URL-safe alphabet", "iVBO-w__", 'not base64: unexpected "-" at character 5'],
    [
      "garbage far inside",
      `${"A".repeat(99_999)}*`,
      "not base64: it has characters outside of the alphabet",
    ],
    ["a missing end", "aGVsbG8", "not base64: its length is not a multiple of 4"],
    ["a GIF", Buffer.from("GIF89a....").toString("base64"), "neither a PNG nor a JPEG image"],
    ["text", Buffer.from("hello").toString("base64"), "neither a PNG nor a JPEG image"],
    ["a bare signature", png(1, 1).slice(0, 12), "the PNG ends before its header does"],
    ["a JPEG's first bytes", base64.slice(0, 200), "the JPEG ends before its header does"],
    ["no width", png(0, 10), "an image of 0 x 10 pixels has nothing to read"],
    ["no height", png(10, 0), "an image of 10 x 0 pixels has nothing to read"],
    [
      "50 megapixels",
      png(10_000, 5_000),
      "10000 x 5000 pixels are 50.0 megapixels; the image must stay below 50",
    ],
    [
      "the largest PNG",
      png(2 ** 31 - 1, 2 ** 31 - 1),
      "2147483647 x 2147483647 pixels are 4611686014132.4 megapixels; the image must stay below 50",
    ],
  ])("refuses %s", async (_, text, why) => {
    expect(await issueOf(text)).toBe(why);
  });

  it("finds a JPEG's size behind other segments", async () => {
    const exif = Buffer.concat([Buffer.from([0xff, 0xe1, 0xff, 0xff]), Buffer.alloc(0xfffd, 0xff)]);
    const frame = Buffer.from("ffc2000b080000000a01011100", "hex");
    const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8]), exif, Buffer.from([0xff]), frame]);
    const why = "an image of 10 x 0 pixels has nothing to read";
    expect(await issueOf(jpeg.toString("base64"))).toBe(why);
  });

  it("takes just below 50 megapixels", async () => {
    expect(await issueOf(png(9_999, 5_000))).toBe("");
  });

  it("refuses other types and languages", async () => {
    expect(await issuesOf({})).toHaveLength(1);
    expect(await issuesOf({ img_data: 7 })).toHaveLength(1);
    expect(await issuesOf({ img_data: base64, lang: "tlh" })).toHaveLength(1);
    expect(await issuesOf("text")).toHaveLength(1);
  });
});
