/** Reads the text in an image with Tesseract. CPU-bound for a second or so, hence in a thread. */
import { task } from "jobtable";
import type { Page } from "tesseract.js";
import { z } from "zod";
import { checkImage } from "../ocr/image.js";
import { endEngine, ImageUnreadable, recognize } from "../ocr/engine.js";

const box = z.object({ x0: z.int(), y0: z.int(), x1: z.int(), y1: z.int() });

export default task({
  name: "ocr",
  description: "Reads the text in a PNG or JPEG image.",
  isolation: "thread",
  // A noisy picture of 49 megapixels takes half a minute.
  timeout: "2m",
  input: z.object({
    img_data: z
      .string()
      .superRefine((text, ctx) => {
        const check = checkImage(text);
        if (check.kind === "refused") ctx.addIssue({ code: "custom", message: check.why });
      })
      .meta({ description: "base64 of a PNG or JPEG file, below 50 megapixels" }),
    lang: z.literal("eng").optional(),
  }),
  output: z.object({
    text: z.string(),
    confidence: z.number().min(0).max(100),
    words: z.array(z.object({ text: z.string(), confidence: z.number(), box })),
  }),
  async run({ img_data }, ctx) {
    const image = checkImage(img_data);
    if (image.kind === "refused") throw new ImageUnreadable(image.why);
    try {
      return resultOf(
        await recognize(image.bytes, ctx.signal, (progress) => ctx.progress(progress)),
      );
    } finally {
      if (image.pixels > WARM_PIXELS) await endEngine();
    }
  },
});

/** Tesseract's memory only grows. After an image beyond this (300 MB of it) it starts anew. */
const WARM_PIXELS = 25_000_000;

function resultOf({ text, confidence, blocks }: Page) {
  const lines = (blocks ?? []).flatMap((block) => block.paragraphs.flatMap((p) => p.lines));
  const words = lines.flatMap((line) => line.words);
  return {
    text,
    confidence: rounded(confidence),
    words: words.map((word) => ({
      text: word.text,
      confidence: rounded(word.confidence),
      // Copied, since Tesseract's own object has more than the four.
      box: { x0: word.bbox.x0, y0: word.bbox.y0, x1: word.bbox.x1, y1: word.bbox.y1 },
    })),
  };
}

/** To one decimal; more would be noise. */
function rounded(confidence: number): number {
  return Math.round(confidence * 10) / 10;
}
