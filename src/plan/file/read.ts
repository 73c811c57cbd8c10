/** Plan files: a path or a text to a `PlanFile`, or an `InvalidPlan` that tells all that is wrong. */
import { isUtf8 } from "node:buffer";
import { constants } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { resolve } from "node:path";
import { definePlan, type PlanFile } from "./define.js";
import { InvalidPlan, type Place } from "./findings.js";
import { MAX_FILE_BYTES } from "./schema.js";
import { parseYamlPlan } from "./yaml-plan.js";

/**
 * @param path of the file, absolute or from the current folder; messages name it as it is given.
 * @throws InvalidPlan also for a file that can't be read.
 */
export async function readPlanFile(path: string): Promise<PlanFile> {
  const bytes = await readBytes(path);
  if (isUtf8(bytes)) return parsePlan(bytes.toString("utf8"), { file: path });
  const before = utf8Start(bytes).split("\n");
  const place = { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
  throw unreadable(path, "this is not UTF-8: save the file as UTF-8", place);
}

/**
 * @param options.file as messages name it; a relative `workspace` counts from its folder.
 * @throws InvalidPlan
 */
export function parsePlan(text: string, { file }: { readonly file: string }): PlanFile {
  // A mark at the start is no part of the text.
  const { value, source, findings } = parseYamlPlan(text.replace(/^\uFEFF/, ""), file);
  if (value === null && findings.count === 0)
    throw unreadable(file, "this is empty: expected a plan, with name and execute", {
      line: 1,
      column: 1,
    });
  return definePlan(value, source, findings, resolve(file));
}

async function readBytes(path: string): Promise<Buffer> {
  let file: FileHandle | undefined;
  try {
    // A pipe of this name must not keep anyone waiting for a writer.
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await file.stat()).isFile()) throw unreadable(path, "this is no regular file", null);
    const bytes = await upTo(file, MAX_FILE_BYTES + 1);
    if (bytes.length > MAX_FILE_BYTES)
      throw unreadable(path, "this is larger than 1 MiB, the most that a plan may be", null);
    return bytes;
  } catch (error) {
    if (error instanceof InvalidPlan) throw error;
    throw unreadable(path, reasonOf(error), null, { cause: error });
  } finally {
    await file?.close();
  }
}

async function upTo(file: FileHandle, most: number): Promise<Buffer> {
  const bytes = Buffer.alloc(most);
  let length = 0;
  for (;;) {
    const { bytesRead } = await file.read(bytes, length, most - length);
    length += bytesRead;
    if (bytesRead === 0 || length === most) return bytes.subarray(0, length);
  }
}

/** The whole characters before the first byte that is none; found by halving. */
function utf8Start(bytes: Buffer): string {
  let text = "";
  let [good, bad] = [0, bytes.length + 1];
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    try {
      const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
      text = decoder.decode(bytes.subarray(0, middle), { stream: true });
      good = middle;
    } catch {
      bad = middle;
    }
  }
  return text;
}

function unreadable(
  name: string,
  message: string,
  place: Place | null,
  options?: ErrorOptions,
): InvalidPlan {
  return new InvalidPlan(name, [{ path: "", place, message }], options);
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EISDIR":
      return "this is a folder: expected a plan file";
    case "EACCES":
      return "no permission to read it";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
