/**
 * Size, line count and SHA-256 of a file below examples/. It mostly waits for the disk, so it runs
 * in the process itself: a hundred of these cost no thread.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { task } from "jobtable";
import { z } from "zod";

/** Nothing outside of this folder is read. */
const ROOT = fileURLToPath(new URL("..", import.meta.url));

class FileRefused extends Error {
  override readonly name = "FileRefused";
}

export default task({
  name: "file-digest",
  description: "Size, line count and SHA-256 of a file below examples/.",
  isolation: "inline",
  input: z.object({
    path: z
      .string()
      .min(1)
      .max(1_000)
      .refine((path) => !path.includes("\0"), { error: "a path can't hold a NUL character" })
      .meta({ description: "relative to examples/, such as images/page.png" }),
  }),
  output: z.object({
    path: z.string(),
    bytes: z.int(),
    lines: z.int(),
    sha256: z.string(),
  }),
  async run({ path }, ctx) {
    const file = await openInside(path);
    try {
      const stat = await file.stat();
      if (!stat.isFile()) throw new FileRefused(`${path} is not a file`);
      const hash = createHash("sha256");
      let bytes = 0;
      let newlines = 0;
      let last = NEWLINE;
      const chunks: AsyncIterable<Buffer> = file.createReadStream({
        autoClose: false,
        signal: ctx.signal,
      });
      for await (const chunk of chunks) {
        hash.update(chunk);
        bytes += chunk.length;
        newlines += countNewlines(chunk);
        last = chunk.at(-1) ?? last;
        ctx.progress({ bytes, of: stat.size });
      }
      // A last line without its newline is a line.
      const lines = last === NEWLINE ? newlines : newlines + 1;
      return { path, bytes, lines, sha256: hash.digest("hex") };
    } finally {
      await file.close();
    }
  },
});

/**
 * Links are followed before the place is checked, and none is followed after. Opening never waits,
 * which it would for a named pipe that nobody writes to.
 */
async function openInside(path: string) {
  const root = await realpath(ROOT);
  const real = await realpath(resolve(root, path)).catch((error: unknown) => {
    throw new FileRefused(`${path} can't be opened`, { cause: error });
  });
  const inside = relative(root, real);
  if (inside === ".." || inside.startsWith(`..${sep}`))
    throw new FileRefused(`${path} is outside of the folder that this task may read`);
  return open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}

const NEWLINE = 0x0a;

function countNewlines(chunk: Buffer): number {
  let count = 0;
  for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
