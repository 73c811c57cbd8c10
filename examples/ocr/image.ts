/**
 * What can be said about an image before anything decodes it: whether the text is base64, whether
 * the bytes are a PNG or a JPEG, and how many pixels the header promises. A few hundred bytes of
 * PNG can unpack to gigabytes, so the promise is checked first and the decoder sees nothing else.
 */

/** Images of this many pixels or more are refused: decoded they take 200 MB and upwards. */
export const PIXEL_LIMIT = 50_000_000;

export type ImageCheck =
  | { readonly kind: "image"; readonly bytes: Buffer; readonly pixels: number }
  | { readonly kind: "refused"; readonly why: string };

/** @param text base64 of a PNG or JPEG file, with or without a `data:` URL's beginning. */
export function checkImage(text: string): ImageCheck {
  const base64 = text.slice(dataUrlPrefixChars(text));
  if (base64 === "") return refused("the image is empty");
  const bytes = decodeBase64(base64);
  if (bytes === undefined) return refused(whyNotBase64(base64));
  const format = formatOf(bytes);
  if (format === undefined) return refused("neither a PNG nor a JPEG image");
  const size = format === "PNG" ? pngSize(bytes) : jpegSize(bytes);
  if (size === undefined) return refused(`the ${format} ends before its header does`);
  const { width, height } = size;
  if (width === 0 || height === 0)
    return refused(`an image of ${String(width)} x ${String(height)} pixels has nothing to read`);
  const pixels = width * height;
  if (pixels >= PIXEL_LIMIT) return refused(tooLarge(width, height));
  return { kind: "image", bytes, pixels };
}

function refused(why: string): ImageCheck {
  return { kind: "refused", why };
}

function tooLarge(width: number, height: number): string {
  const megapixels = (width * height) / 1e6;
  return `${String(width)} x ${String(height)} pixels are ${megapixels.toFixed(1)} megapixels; the image must stay below ${String(PIXEL_LIMIT / 1e6)}`;
}

function dataUrlPrefixChars(text: string): number {
  return /^data:[^,]{0,100};base64,/i.exec(text)?.[0].length ?? 0;
}

/**
 * Node skips what is not base64 instead of refusing it, so a broken text comes out shorter than
 * its length promises. Comparing the two is a third of the work of a pattern over the 16 million
 * characters of a large upload. Node also takes the URL-safe alphabet, which isn't ours.
 */
function decodeBase64(base64: string): Buffer | undefined {
  if (base64.length % 4 !== 0) return undefined;
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length !== (base64.length / 4) * 3 - padding) return undefined;
  return base64.includes("-") || base64.includes("_") ? undefined : bytes;
}

/** Looks for the culprit in the first part only: it is mostly there, and the search takes its time. */
function whyNotBase64(base64: string): string {
  const odd = base64.slice(0, 65_536).search(/[^A-Za-z0-9+/]/);
  if (odd >= 0 && !/^={0,2}$/.test(base64.slice(odd, odd + 3)))
    return `not base64: unexpected ${JSON.stringify(base64[odd])} at character ${String(odd + 1)}`;
  return base64.length % 4 === 0
    ? "not base64: it has characters outside of the alphabet"
    : "not base64: its length is not a multiple of 4";
}

interface Size {
  readonly width: number;
  readonly height: number;
}

const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

function formatOf(bytes: Buffer): "PNG" | "JPEG" | undefined {
  if (bytes.subarray(0, 8).equals(PNG_SIGNATURE)) return "PNG";
  if (bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) return "JPEG";
  return undefined;
}

/** The first chunk is IHDR and starts with width and height (https://www.w3.org/TR/png-3/#11IHDR). */
function pngSize(bytes: Buffer): Size | undefined {
  if (bytes.length < 24 || bytes.toString("latin1", 12, 16) !== "IHDR") return undefined;
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/**
 * Walks the segments up to the frame header (ITU-T T.81, B.1.1 and B.2.2), as libjpeg does: what
 * stands between segments is skipped, and a scan before the frame header is an error.
 */
function jpegSize(bytes: Buffer): Size | undefined {
  for (let at = 2; ;) {
    at = bytes.indexOf(0xff, at);
    if (at < 0) return undefined;
    while (bytes[at] === 0xff) at += 1;
    const marker = bytes[at] ?? END_OF_IMAGE;
    at += 1;
    if (marker === END_OF_IMAGE || marker === START_OF_SCAN) return undefined;
    if (hasNoLength(marker)) continue;
    if (isFrameHeader(marker)) {
      if (at + 7 > bytes.length) return undefined;
      return { width: bytes.readUInt16BE(at + 5), height: bytes.readUInt16BE(at + 3) };
    }
    if (at + 2 > bytes.length) return undefined;
    at += Math.max(2, bytes.readUInt16BE(at));
  }
}

const END_OF_IMAGE = 0xd9;
const START_OF_SCAN = 0xda;

/** SOF0 to SOF15, without the three codes in between that mean something else (DHT, JPG, DAC). */
function isFrameHeader(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** A stuffed 0xFF, TEM, the restart markers and a repeated start of image. */
function hasNoLength(marker: number): boolean {
  return marker === 0x00 || marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
}
