/** Encodes PNG files by hand, so that tests can make images that are no samples, and broken ones. */
import { crc32, deflateSync } from "node:zlib";

export const PNG_SIGNATURE = Buffer.from("89504e470d0a1a0a", "hex");

export function pngChunk(type: string, body: Buffer): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(body.length, 0);
  head.write(type, 4, "latin1");
  const tail = Buffer.alloc(4);
  tail.writeUInt32BE(crc32(Buffer.concat([head.subarray(4), body])), 0);
  return Buffer.concat([head, body, tail]);
}

/** The signature and the header chunk: grey, 8 bits. */
export function pngHeader(width: number, height: number): Buffer {
  const body = Buffer.alloc(13);
  body.writeUInt32BE(width, 0);
  body.writeUInt32BE(height, 4);
  body[8] = 8;
  return Buffer.concat([PNG_SIGNATURE, pngChunk("IHDR", body)]);
}

/** @param greyAt 0 (black) to 255 (white) at a place. */
export function encodePng(
  width: number,
  height: number,
  greyAt: (x: number, y: number) => number,
): Buffer {
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; y += 1)
    for (let x = 0; x < width; x += 1) rows[y * (width + 1) + 1 + x] = greyAt(x, y);
  const data = pngChunk("IDAT", deflateSync(rows));
  return Buffer.concat([pngHeader(width, height), data, pngChunk("IEND", Buffer.alloc(0))]);
}

/** Five columns by seven rows each. */
const GLYPHS: Readonly<Record<string, readonly string[]>> = {
  " ": ["", "", "", "", "", "", ""],
  E: ["#####", "#    ", "#    ", "#### ", "#    ", "#    ", "#####"],
  H: ["#   #", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"],
  L: ["#    ", "#    ", "#    ", "#    ", "#    ", "#    ", "#####"],
  O: [" ### ", "#   #", "#   #", "#   #", "#   #", "#   #", " ### "],
  T: ["#####", "  #  ", "  #  ", "  #  ", "  #  ", "  #  ", "  #  "],
  "4": ["   # ", "  ## ", " # # ", "#  # ", "#####", "   # ", "   # "],
  "2": [" ### ", "#   #", "    #", "   # ", "  #  ", " #   ", "#####"],
};

/** One line of black on white in a five-by-seven bitmap font, each of its dots `scale` pixels wide. */
export function textPng(text: string, scale: number): Buffer {
  const margin = 6;
  const columns = text.length * 6 + 2 * margin;
  return encodePng(columns * scale, (7 + 2 * margin) * scale, (x, y) => {
    const column = Math.floor(x / scale) - margin;
    const row = Math.floor(y / scale) - margin;
    const glyph = GLYPHS[text[Math.floor(column / 6)] ?? " "];
    return glyph?.[row]?.[column % 6] === "#" ? 0 : 255;
  });
}
