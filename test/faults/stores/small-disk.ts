/**
 * A disk that can be filled: a file system of a given size in memory (tmpfs), which only root may
 * mount. The ballast takes all the room that is left, so that the next page that anyone needs is
 * refused.
 */
import { spawnSync } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const BLOCK = Buffer.alloc(64 * 1_024);

export class SmallDisk {
  readonly path: string;
  readonly #ballast: string;
  #mounted = true;

  private constructor(path: string) {
    this.path = path;
    this.#ballast = join(path, "ballast");
  }

  /** Why none can be made here, or null. */
  static lacking(): string | null {
    if (process.getuid?.() !== 0) return "only root may mount a disk of a given size";
    const probe = mkdtempSync(join(tmpdir(), "jobtable-disk-"));
    try {
      SmallDisk.mount(probe, 1).unmount();
      return null;
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    } finally {
      rmdirSync(probe);
    }
  }

  static mount(path: string, sizeMb: number): SmallDisk {
    mkdirSync(path, { recursive: true });
    must("mount", "-t", "tmpfs", "-o", `size=${String(sizeMb)}m,mode=755`, "tmpfs", path);
    const disk = new SmallDisk(path);
    return disk;
  }

  fill(): void {
    const file = openSync(this.#ballast, "a");
    try {
      for (;;) if (writeSync(file, BLOCK) < BLOCK.length) return;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "ENOSPC")) throw error;
    } finally {
      closeSync(file);
    }
  }

  makeRoom(): void {
    rmSync(this.#ballast, { force: true });
  }

  /** Idempotent. */
  unmount(): void {
    if (!this.#mounted) return;
    this.#mounted = false;
    // Lazily: a process that is being killed may still hold a file.
    must("umount", "--lazy", this.path);
  }
}

function must(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args, { encoding: "utf8" });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(stderr.trim().replaceAll(/\s+/g, " "));
}
