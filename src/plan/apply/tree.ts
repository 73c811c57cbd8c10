/**
 * The workspace while files are put in place and back: each change looks first, from the root, whether
 * the way is one of folders only, so nothing is ever written through a link. A file comes whole and
 * under another name, and takes its place in one step.
 */
import { dirname, join } from "node:path";
import { codeOf, orNull } from "../../runtime/error-code.js";
import type { Files } from "./files.js";
import { foldersAbove, lookAt, wayTo, type Image, type Look } from "./image.js";
import type { Journal } from "./journal.js";

/** A path, and the number that the file has which is made for it. */
interface Place {
  readonly number: number;
  readonly path: string;
}

export class Tree {
  readonly #files: Files;
  readonly #root: string;
  readonly #token: string;

  constructor(files: Files, root: string, { token }: Pick<Journal, "token">) {
    this.#files = files;
    this.#root = root;
    this.#token = token;
  }

  look(path: string): Promise<Look> {
    return lookAt(this.#files, this.#root, path);
  }

  /**
   * @param mtimeMs of the file; null: now.
   * @returns whether its folder is there to hold it.
   */
  async prepare(
    { number, path }: Place,
    image: Image,
    from: string,
    mtimeMs: number | null,
  ): Promise<boolean> {
    if (!(await this.#hasParent(path))) return false;
    const at = this.#beside(path, number);
    await orNull(this.#files.remove(at), "ENOENT");
    if (image.kind === "link") await this.#files.makeLink(at, image.target);
    if (image.kind !== "file") return true;
    const facts = await this.#files.copy(from, at);
    if (facts.hash !== image.hash) throw new Error(`${from} is not what was written there`);
    if (mtimeMs !== null) await this.#files.setTime(at, mtimeMs);
    await this.#files.sync(at);
    return true;
  }

  /** What was prepared takes its place. */
  async take({ number, path }: Place): Promise<void> {
    await this.#files.move(this.#beside(path, number), this.#at(path));
  }

  /** What was prepared and not taken. */
  async drop({ number, path }: Place): Promise<void> {
    if (await this.#hasParent(path))
      await orNull(this.#files.remove(this.#beside(path, number)), "ENOENT");
  }

  /** A file or link. */
  async remove(path: string): Promise<void> {
    await this.#files.remove(this.#at(path));
  }

  /** Does nothing where something stands, or the folder above is missing. @returns whether it is a folder now. */
  async makeFolder(path: string, mode?: number): Promise<boolean> {
    const { image, hasParent } = await this.look(path);
    if (image.kind === "folder") return true;
    if (image.kind !== "nothing" || !hasParent) return false;
    await this.#files.makeFolder(this.#at(path));
    if (mode !== undefined) await this.#files.setMode(this.#at(path), mode);
    return true;
  }

  /** @returns false when something is in it. */
  async removeFolder(path: string): Promise<boolean> {
    if ((await this.look(path)).image.kind !== "folder") return true;
    try {
      await this.#files.removeFolder(this.#at(path));
      return true;
    } catch (error) {
      if (["ENOTEMPTY", "EEXIST"].includes(codeOf(error))) return false;
      throw error;
    }
  }

  /** Copies a file or link of the workspace to a place of ours, where nothing may stand. */
  async copyOut(path: string, image: Image, to: string): Promise<void> {
    if (image.kind === "link") await this.#files.makeLink(to, image.target);
    if (image.kind !== "file") return;
    await this.#files.copy(this.#at(path), to);
    await this.#files.sync(to);
  }

  async makeFoldersAbove(path: string): Promise<void> {
    for (const above of foldersAbove(path)) await this.makeFolder(above);
  }

  /** Waits until the names in all folders above these paths are on disk. */
  async sync(paths: Iterable<string>): Promise<void> {
    const folders = new Set<string>([""]);
    for (const path of paths) for (const above of foldersAbove(path)) folders.add(above);
    for (const folder of folders) {
      const isThere = folder === "" || (await this.look(folder)).image.kind === "folder";
      if (isThere) await this.#files.sync(this.#at(folder));
    }
  }

  async #hasParent(path: string): Promise<boolean> {
    return (await wayTo(this.#files, this.#root, path)).hasParent;
  }

  #at(path: string): string {
    return join(this.#root, path);
  }

  #beside(path: string, number: number): string {
    return join(dirname(this.#at(path)), `.jobtable-${this.#token}-${String(number)}`);
  }
}
