/**
 * Puts the pre-images back, from whatever state in between. Nothing tells how far an apply or an earlier
 * attempt at this had come, and nothing needs to: each path is compared with its two images. So this may
 * be killed anywhere and begun again. A path that is neither was edited by someone; what becomes of it
 * is the caller's choice, and both versions are there afterwards:
 *
 * - `leave`: it stays as it is, and the original is kept apart. After a crash, when hours may have passed.
 * - `replace`: the original comes back, and the edited version is kept apart. Where our own steps ran.
 */
import { codeOf, orNull } from "../../runtime/error-code.js";
import type { Files } from "./files.js";
import { isLeaf, isSame, type Image, type Look } from "./image.js";
import type { Edited } from "./edited.js";
import type { Journal, JournalFolder } from "./journal.js";
import type { Entry } from "./stage.js";
import { Tree } from "./tree.js";

export type EditPolicy = "leave" | "replace";

export async function restore(
  files: Files,
  root: string,
  folder: JournalFolder,
  journal: Journal,
  policy: EditPolicy,
): Promise<Edited[]> {
  return new Restoring(files, root, folder, journal, policy).run();
}

class Restoring {
  readonly #files: Files;
  readonly #tree: Tree;
  readonly #folder: JournalFolder;
  readonly #journal: Journal;
  readonly #policy: EditPolicy;
  readonly #edited: Edited[] = [];

  constructor(
    files: Files,
    root: string,
    folder: JournalFolder,
    journal: Journal,
    policy: EditPolicy,
  ) {
    this.#files = files;
    this.#tree = new Tree(files, root, journal);
    this.#folder = folder;
    this.#journal = journal;
    this.#policy = policy;
  }

  async run(): Promise<Edited[]> {
    const { entries, madeFolders, removedFolders } = this.#journal;
    for (const entry of entries) await this.#tree.drop(entry);
    for (const entry of entries) if (!isLeaf(entry.before)) await this.#takeAway(entry);
    for (const path of [...madeFolders].reverse()) await this.#tree.removeFolder(path);
    for (const { path, mode } of [...removedFolders].reverse())
      await this.#tree.makeFolder(path, mode);
    for (const entry of entries) if (isLeaf(entry.before)) await this.#putBack(entry);
    await this.#tree.sync(entries.map(({ path }) => path));
    return this.#edited;
  }

  /** One that was not there, or was a folder. */
  async #takeAway(entry: Entry): Promise<void> {
    const { path, before, after } = entry;
    const { image } = await this.#tree.look(path);
    if (isSame(image, before) || image.kind === "nothing") return;
    if (isSame(image, after)) return this.#tree.remove(path);
    if (this.#policy === "replace" && isLeaf(image)) {
      await this.#keepEdited(path, image);
      await this.#tree.remove(path);
    } else this.#edited.push({ path, inPlace: "edited", other: null });
  }

  async #putBack(entry: Entry): Promise<void> {
    const { path, before, after } = entry;
    const look = await this.#tree.look(path);
    if (isSame(look.image, before)) return;
    const isAsAfter =
      isSame(look.image, after) || (look.image.kind === "nothing" && !isLeaf(after));
    if (!isAsAfter && !(this.#policy === "replace" && (await this.#makeWay(entry, look))))
      return this.#keepOriginal(entry);
    if (this.#policy === "replace") await this.#tree.makeFoldersAbove(path);
    const from = this.#folder.before(entry.number);
    const mtimeMs = before.kind === "file" ? before.mtimeMs : null;
    const isPrepared = await this.#tree.prepare(entry, before, from, mtimeMs);
    if (!isPrepared) return this.#keepOriginal(entry);
    try {
      await this.#tree.take(entry);
    } catch (error) {
      if (!["EISDIR", "ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(codeOf(error))) throw error;
      // A folder came to stand there, with something in it.
      await this.#tree.drop(entry);
      await this.#keepOriginal(entry);
    }
  }

  /** @returns whether the original may come back. */
  async #makeWay({ path }: Entry, { image }: Look): Promise<boolean> {
    if (image.kind === "nothing") return true;
    if (!isLeaf(image)) return false;
    await this.#keepEdited(path, image);
    return true;
  }

  async #keepEdited(path: string, image: Image): Promise<void> {
    const other = this.#folder.kept(path);
    await this.#folder.makeKept(path);
    await orNull(this.#files.remove(other), "ENOENT");
    await this.#tree.copyOut(path, image, other);
    this.#edited.push({ path, inPlace: "original", other });
  }

  async #keepOriginal({ number, path, before }: Entry): Promise<void> {
    const other = this.#folder.kept(path);
    await this.#folder.makeKept(path);
    // One that was killed after this has kept it already.
    await orNull(this.#files.remove(other), "ENOENT");
    if (before.kind === "file") await this.#files.addName(this.#folder.before(number), other);
    if (before.kind === "link") await this.#files.makeLink(other, before.target);
    this.#edited.push({ path, inPlace: "edited", other });
  }
}
