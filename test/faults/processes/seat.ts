/**
 * A place for one process of a kind (the second worker, the first server), which is taken anew after
 * each kill. Each taking is a life, with a name of its own in the journal. A process that ends without
 * having been told to is a fault of the product.
 */
import type { ChildOptions } from "./children.js";
import { Command, type Ended } from "./command.js";
import { systemClock } from "../../../src/runtime/clock.js";
import { pause } from "../pause.js";

export interface SeatOptions {
  /** `worker-2` */
  readonly name: string;
  readonly child: (life: string) => ChildOptions;
  /** What it says when it is up. */
  readonly ready: RegExp;
}

/** An orderly stop takes seconds; docs/operations.md tells operators to wait so long before SIGKILL. */
const STOP_LIMIT_MS = 15_000;

type Mood = "running" | "told to end" | "killed";

interface Life {
  readonly name: string;
  readonly command: Command;
  /** What the process said when it was up, first group: a worker's id. */
  readonly up: Promise<string | null>;
  ready: boolean;
  paused: boolean;
  mood: Mood;
}

export class Seat {
  readonly name: string;
  readonly #options: SeatOptions;
  /** What its processes did that they must not. */
  readonly faults: string[] = [];
  /** The ids that its lives had in the ledger, by life. */
  readonly idOfLife = new Map<string, string>();
  #lives = 0;
  #life: Life | null = null;

  constructor(options: SeatOptions) {
    this.#options = options;
    this.name = options.name;
  }

  /** Up, and neither held by a pause nor about to go. */
  get ready(): boolean {
    const life = this.#life;
    return life !== null && life.ready && !life.paused && life.mood === "running";
  }

  /** Starts a process; resolves when it is up, or was killed before. */
  async start(): Promise<void> {
    this.#lives += 1;
    const name = `${this.name}.${String(this.#lives)}`;
    const command = new Command(this.#options.child(name));
    const life: Life = {
      name,
      command,
      up: command.says(this.#options.ready).then((found) => found?.[1] ?? null),
      ready: false,
      paused: false,
      mood: "running",
    };
    this.#life = life;
    void command.ended.then((ended) => {
      this.#over(life, ended);
    });
    const id = await life.up;
    if (id === null || life.mood !== "running") return;
    life.ready = true;
    this.idOfLife.set(name, id);
  }

  /** Resolves when whoever was started here is up, or gone. */
  async settled(): Promise<void> {
    await this.#life?.up;
  }

  /** kill -9; resolves when it is gone. */
  async kill(): Promise<void> {
    const life = this.#life;
    if (life === null) return;
    life.mood = "killed";
    life.command.signal("SIGKILL");
    await life.command.ended;
  }

  /** SIGSTOP for a while, then SIGCONT, unless it was killed meanwhile. */
  async pause(ms: number): Promise<void> {
    const life = this.#life;
    if (life === null) return;
    life.paused = true;
    life.command.signal("SIGSTOP");
    await pause(ms);
    life.command.signal("SIGCONT");
    life.paused = false;
  }

  /** SIGTERM, once it is up; it has to end in order. Idempotent. */
  async stop(): Promise<void> {
    const life = this.#life;
    if (life === null || (await life.up) === null) return;
    life.mood = "told to end";
    life.command.signal("SIGTERM");
    const cancelTimer = systemClock.timer(STOP_LIMIT_MS, () => {
      this.faults.push(`${life.name} did not end within ${String(STOP_LIMIT_MS)} ms of SIGTERM`);
      void this.kill();
    });
    await life.command.ended;
    cancelTimer();
  }

  #over({ name, mood }: Life, { code, signal }: Ended): void {
    if (this.#life?.name === name) this.#life = null;
    if (mood === "killed" || (mood === "told to end" && code === 0)) return;
    const how = signal ?? `code ${String(code)}`;
    this.faults.push(`${name} ended with ${how} while ${mood === "running" ? "at work" : mood}`);
  }
}
