/**
 * Notices that another connection, of whichever process, has changed the database, and says so at a
 * bounded pace. `PRAGMA data_version` tells it for the price of reading one number; this class decides
 * when to ask: after every group of our own, when the write-ahead log's file changes (a few times in
 * the next moments, since a writer touches the file before its commit can be seen), and four times a
 * second where the system can't watch files. The log's file is another one after the last connection
 * to it was closed; then the watcher moves on to that one. Looking for what changed costs more than
 * asking, so the time that looks take decides when the next may be asked for: they never take more
 * than a tenth.
 */
import { statSync, watch, type FSWatcher } from "node:fs";
import type { Clock } from "../../runtime/clock.js";

/** While the file is watched: in case the system forgets to say something. Idle, this is the only statement. */
const FALLBACK_MS = 1_000;
/** Where files can't be watched: a cancel and the end that it brings are two changes, and known within a second. */
const UNWATCHED_MS = 250;
/** After the file has changed. A commit is seen some 0.1 to 10 ms after its first write; on a slow disk it takes its fsync. */
const ASK_AGAIN_MS = [1, 2, 4, 8, 16, 32, 64, 128, 250] as const;
/** Of these pauses: until they are over, further changes of the file wait; after that they begin anew. */
const CLOSE_PAUSES = 5;
/** Other processes may commit a thousand times a second; nobody needs to hear it more often than this. */
const WORK_PACE_MS = 5;
const LOOK_PACE_MS = 10;
/** How much later a look makes the next one, as a multiple of the time it took: at most a tenth is spent on looks. */
const PAUSE_PER_LOOK = 10;

export interface ForeignChangesOptions {
  readonly walPath: string;
  readonly clock: Clock;
  /** Null: can't be read now. */
  readonly dataVersion: () => number | null;
  /** Whether jobs wait. */
  readonly hasWork: () => boolean;
  readonly report: (change: { readonly look: boolean; readonly work: boolean }) => void;
}

export class ForeignChanges {
  readonly #options: ForeignChangesOptions;
  #seen: number | null;
  #watcher: FSWatcher | undefined;
  /** Which file is watched: the path may come to name another one. */
  #watched: string | undefined;
  readonly #work: Paced;
  readonly #look: Paced;
  #cancelFallback: () => void = () => undefined;
  #cancelAsking: () => void = () => undefined;
  /** Which of the pauses is on; beyond all of them: none. */
  #pause: number = ASK_AGAIN_MS.length;
  #touchedAgain = false;

  constructor(options: ForeignChangesOptions) {
    this.#options = options;
    this.#seen = options.dataVersion();
    const { clock, report } = options;
    this.#work = new Paced(clock, WORK_PACE_MS, () => {
      if (options.hasWork()) report({ look: false, work: true });
    });
    this.#look = new Paced(clock, LOOK_PACE_MS, () => {
      report({ look: true, work: false });
    });
    this.#watchFile();
    this.#armFallback();
  }

  /** Asks now. */
  ask(): void {
    const version = this.#options.dataVersion();
    if (version === this.#seen) return;
    this.#seen = version;
    this.#work.request();
    this.#look.request();
  }

  /** Tells how long a look has taken. */
  looked(tookMs: number): void {
    if (tookMs > 0) this.#look.pause(tookMs * PAUSE_PER_LOOK);
  }

  close(): void {
    this.#cancelFallback();
    this.#cancelAsking();
    this.#work.close();
    this.#look.close();
    this.#unwatch();
  }

  /** Watches the file that is there now, if it is not watched already. */
  #watchFile(): void {
    const { walPath } = this.#options;
    try {
      const { ino, birthtimeNs } = statSync(walPath, { bigint: true });
      // The number of a file that is gone may be given to the next one.
      const file = `${String(ino)} ${String(birthtimeNs)}`;
      if (file === this.#watched) return;
      this.#unwatch();
      this.#watcher = watch(walPath, { persistent: false }, (event) => {
        if (event === "rename") {
          this.#unwatch();
          this.#watchFile();
        }
        this.#touched();
      });
      this.#watched = file;
      this.#watcher.on("error", () => {
        this.#unwatch();
      });
    } catch {
      // No such file now, or no way to watch: the fallback tries again.
      this.#unwatch();
    }
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watched = undefined;
  }

  /** Own commits touch the file too: however often it happens, only the rounds below are asked. */
  #touched(): void {
    this.#touchedAgain = this.#pause < CLOSE_PAUSES;
    if (this.#touchedAgain) return;
    this.#cancelAsking();
    this.#askBefore(0);
  }

  /** Asks, and again after this pause and those that follow. */
  #askBefore(pause: number): void {
    this.ask();
    this.#pause = pause;
    if (pause === CLOSE_PAUSES && this.#touchedAgain) {
      this.#touched();
      return;
    }
    const pauseMs = ASK_AGAIN_MS[pause];
    if (pauseMs === undefined) return;
    this.#cancelAsking = this.#options.clock.timer(pauseMs, () => {
      this.#askBefore(pause + 1);
    });
  }

  #armFallback(): void {
    const pauseMs = this.#watcher === undefined ? UNWATCHED_MS : FALLBACK_MS;
    this.#cancelFallback = this.#options.clock.timer(pauseMs, () => {
      this.ask();
      this.#watchFile();
      this.#armFallback();
    });
  }
}

/** Does something when asked to, but not more often than allowed: then later, once. */
class Paced {
  readonly #clock: Clock;
  readonly #paceMs: number;
  readonly #fire: () => void;
  #notBeforeMs = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock, paceMs: number, fire: () => void) {
    this.#clock = clock;
    this.#paceMs = paceMs;
    this.#fire = fire;
  }

  request(): void {
    if (this.#cancelTimer !== undefined) return;
    const waitMs = this.#notBeforeMs - this.#clock.monotonicMs();
    if (waitMs > 0) {
      this.#cancelTimer = this.#clock.timer(waitMs, () => {
        this.#cancelTimer = undefined;
        this.request();
      });
      return;
    }
    this.#notBeforeMs = this.#clock.monotonicMs() + this.#paceMs;
    this.#fire();
  }

  pause(ms: number): void {
    this.#notBeforeMs = Math.max(this.#notBeforeMs, this.#clock.monotonicMs()) + ms;
  }

  close(): void {
    this.#cancelTimer?.();
  }
}
