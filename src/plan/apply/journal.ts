/**
 * The journal of an apply, in a folder of ours within the git folder of the working tree:
 *
 *     <git folder>/jobtable/applies/<id>/before/, after/   the images, by number
 *                                        journal.json      what is to become of what
 *     <git folder>/jobtable/kept/<id>/    versions that someone edited, or their originals
 *     <git folder>/jobtable/trash/        what nobody needs any more
 *
 * `journal.json` is there, whole and with all images of before on disk, before the first change of the workspace.
 * It is renamed to `committed.json` when the apply is to stay: that one step decides. When everything
 * was put back but what someone had edited, `restored.json` stands beside it and names that. The folder is moved to the
 * trash in one step too, so no other state of it is ever met; one with none of these files had not begun.
 *
 * All of it is written and read by the holder of the workspace's lock alone.
 */
import { join } from "node:path";
import { JobtableError } from "../../job/errors.js";
import { newToken } from "../../runtime/random.js";
import { orNull } from "../../runtime/error-code.js";
import type { Edited } from "./edited.js";
import type { Files } from "./files.js";
import type { Staged } from "./stage.js";

export interface Journal extends Staged {
  readonly version: 1;
  readonly id: string;
  /** Part of the names of files that lie beside their targets for a moment. */
  readonly token: string;
}

export type JournalState =
  | { readonly kind: "not-begun" }
  /** `sinceMs`: when it began, ms since the Unix epoch. */
  | { readonly kind: "committed"; readonly sinceMs: number }
  | { readonly kind: "restored"; readonly edited: readonly Edited[] }
  | { readonly kind: "begun"; readonly journal: Journal };

export class JournalFolder {
  readonly id: string;
  readonly dir: string;
  readonly #files: Files;
  readonly #home: string;

  /** @param home `<git folder>/jobtable`. */
  constructor(files: Files, home: string, id: string) {
    this.#files = files;
    this.#home = home;
    this.id = id;
    this.dir = join(home, "applies", id);
  }

  /** Of all applies that left one, by id. */
  static async all(files: Files, home: string): Promise<JournalFolder[]> {
    const ids = (await orNull(files.list(join(home, "applies")), "ENOENT")) ?? [];
    return ids.sort().map((id) => new JournalFolder(files, home, id));
  }

  /** Whether one was killed while it removed what nobody needs any more. */
  static async hasTrash(files: Files, home: string): Promise<boolean> {
    return ((await orNull(files.list(join(home, "trash")), "ENOENT")) ?? []).length > 0;
  }

  /** Whether an apply is under way, or was cut short: the workspace may be half-changed. */
  static async anyBegun(files: Files, home: string): Promise<boolean> {
    for (const { dir } of await JournalFolder.all(files, home))
      if ((await files.stat(join(dir, "journal.json"))) !== null) return true;
    return false;
  }

  static emptyTrash(files: Files, home: string): Promise<void> {
    return files.removeTree(join(home, "trash"));
  }

  async make(): Promise<void> {
    // The trash too: a disk that is full later has no room to make it.
    for (const name of ["applies", "trash"])
      await orNull(this.#files.makeFolder(join(this.#home, name), 0o700), "EEXIST");
    await this.#files.makeFolder(this.dir, 0o700);
  }

  before(number: number): string {
    return join(this.dir, "before", String(number));
  }

  after(number: number): string {
    return join(this.dir, "after", String(number));
  }

  /** Where a version is kept for people to find. */
  kept(path: string): string {
    return join(this.#home, "kept", this.id, path);
  }

  async makeKept(path: string): Promise<void> {
    const folders = ["kept", this.id, ...path.split("/").slice(0, -1)];
    let at = this.#home;
    for (const name of folders) {
      at = join(at, name);
      await orNull(this.#files.makeFolder(at, 0o700), "EEXIST");
    }
  }

  /** From here on the apply is put back whatever happens, unless it is committed. */
  async begin(staged: Staged): Promise<Journal> {
    const journal: Journal = { version: 1, id: this.id, token: newToken(), ...staged };
    const files = this.#files;
    // Those of after are of no use to whoever puts back.
    for (const { number, before } of staged.entries)
      if (before.kind === "file") await files.sync(this.before(number));
    await files.sync(join(this.dir, "before"));
    await this.#publish("journal.json", journal);
    await files.sync(join(this.#home, "applies"));
    return journal;
  }

  async commit(): Promise<void> {
    await this.#files.move(join(this.dir, "journal.json"), join(this.dir, "committed.json"));
    await this.#files.sync(this.dir);
  }

  /** Where nothing was edited this says nothing: looking again finds the same, and takes no room. */
  async finishRestoring(edited: readonly Edited[]): Promise<void> {
    if (edited.length > 0) await this.#publish("restored.json", edited);
  }

  async state(): Promise<JournalState> {
    const read = (name: string): Promise<string | null> => this.#files.read(join(this.dir, name));
    const committed = await this.#files.stat(join(this.dir, "committed.json"));
    if (committed !== null) return { kind: "committed", sinceMs: committed.mtimeMs };
    const restored = await read("restored.json");
    if (restored !== null) return { kind: "restored", edited: this.#parse(restored, isEditedList) };
    const journal = await read("journal.json");
    if (journal !== null) return { kind: "begun", journal: this.#parse(journal, isJournal) };
    return { kind: "not-begun" };
  }

  async discard(): Promise<void> {
    const trash = join(this.#home, "trash");
    await orNull(this.#files.makeFolder(trash, 0o700), "EEXIST");
    await this.#files.move(this.dir, join(trash, `${this.id}-${newToken()}`));
    await this.#files.sync(join(this.#home, "applies"));
    await JournalFolder.emptyTrash(this.#files, this.#home);
  }

  async #publish(name: string, content: unknown): Promise<void> {
    const fresh = join(this.dir, `${name}.new`);
    await orNull(this.#files.remove(fresh), "ENOENT");
    await this.#files.write(fresh, JSON.stringify(content));
    await this.#files.move(fresh, join(this.dir, name));
    await this.#files.sync(this.dir);
  }

  #parse<T>(text: string, is: (value: unknown) => value is T): T {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      value = null;
    }
    if (is(value)) return value;
    throw new JobtableError(
      "apply_failed",
      `the journal in ${JSON.stringify(this.dir)} can't be read: ` +
        "put back by hand what its before/ holds, then remove the folder",
    );
  }
}

function isJournal(value: unknown): value is Journal {
  if (typeof value !== "object" || value === null) return false;
  if (!("version" in value) || value.version !== 1) return false;
  if (!("token" in value) || typeof value.token !== "string") return false;
  return "entries" in value && Array.isArray(value.entries) && "removedFolders" in value;
}

function isEditedList(value: unknown): value is Edited[] {
  return Array.isArray(value);
}
