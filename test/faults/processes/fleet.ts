/** The workers and servers of a scenario, all on one store. */
import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join, resolve } from "node:path";
import type { ChildOptions } from "./children.js";
import { Command } from "./command.js";
import { Seat } from "./seat.js";

const TASKS = resolve(import.meta.dirname, "../tasks");
const TASK_FILES = ["note.ts", "grind.ts"].map((file) => join(TASKS, file));
const SHIFTED_CLOCK = resolve(import.meta.dirname, "shifted-clock.mjs");

export interface FleetOptions {
  readonly folder: string;
  readonly store: string;
  readonly journal: string;
  readonly workers: number;
  readonly servers: number;
  /** Of each worker. */
  readonly slots: number;
  /** Of queued + running. */
  readonly bound: number;
  readonly workerTimeoutS: number;
  /** How far the clocks of some processes are off, by the name of their seat, ms. */
  readonly clockShifts: Readonly<Record<string, number>>;
}

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class Fleet {
  #commands = 0;
  readonly workers: readonly Seat[];
  readonly servers: readonly Seat[];
  /** Of the servers, in order. */
  readonly urls: readonly string[];
  readonly #options: FleetOptions;

  private constructor(options: FleetOptions, ports: readonly number[]) {
    this.#options = options;
    this.urls = ports.map((port) => `http://127.0.0.1:${String(port)}`);
    this.workers = Array.from({ length: options.workers }, (_, index) =>
      this.#worker(`worker-${String(index + 1)}`),
    );
    this.servers = ports.map((port, index) => this.#server(`server-${String(index + 1)}`, port));
  }

  /** Nothing is started yet. */
  static async of(options: FleetOptions): Promise<Fleet> {
    return new Fleet(options, await freePorts(options.servers));
  }

  get seats(): readonly Seat[] {
    return [...this.servers, ...this.workers];
  }

  /** Resolves when all are up. */
  async start(): Promise<void> {
    await Promise.all(this.seats.map((seat) => seat.start()));
  }

  /** Workers first, as an operator would. */
  async stop(): Promise<void> {
    await Promise.all(this.workers.map((seat) => seat.stop()));
    await Promise.all(this.servers.map((seat) => seat.stop()));
  }

  /** A command that answers and ends, on the same store. */
  async run(args: readonly string[]): Promise<Answer> {
    const { store, folder } = this.#options;
    this.#commands += 1;
    const log = this.log(`shell.${String(this.#commands)}`);
    const command = new Command({ args: [...args, "--store", store], cwd: folder, log });
    const { code } = await command.ended;
    return { code, stdout: command.stdout, stderr: readFileSync(log, "utf8") };
  }

  /** Where the standard error of a seat's processes goes. */
  log(name: string): string {
    return join(this.#options.folder, `${name}.log`);
  }

  #worker(name: string): Seat {
    const { slots } = this.#options;
    const args = ["worker", ...TASK_FILES, "--max-workers", String(slots)];
    return new Seat({
      name,
      ready: /^jobtable worker (worker-[0-9a-f]{8}) ready$/m,
      child: (life) => this.#child(name, life, args),
    });
  }

  #server(name: string, port: number): Seat {
    const { bound } = this.#options;
    const own = ["--no-worker", "--port", String(port), "--async-max-queue", String(bound)];
    return new Seat({
      name,
      ready: /^jobtable listening on (\S+)$/m,
      child: (life) => this.#child(name, life, ["serve", ...TASK_FILES, ...own]),
    });
  }

  #child(seat: string, life: string, args: readonly string[]): ChildOptions {
    const { folder, store, journal, workerTimeoutS, clockShifts } = this.#options;
    const shiftMs = clockShifts[seat] ?? 0;
    return {
      nodeArgs: shiftMs === 0 ? [] : ["--import", SHIFTED_CLOCK],
      args: [
        ...args,
        ...["--store", store],
        ...["--worker-timeout", String(workerTimeoutS)],
        // Jobs wait as long as it takes: how long they do is the fault's doing.
        ...["--async-timeout", "0"],
        ...["--log-level", "info"],
      ],
      cwd: folder,
      env: {
        FAULTS_JOURNAL: journal,
        FAULTS_WORKER: life,
        FAULTS_CLOCK_SHIFT_MS: String(shiftMs),
      },
      log: this.log(seat),
    };
  }
}

/** Ports that were free a moment ago; servers come back on theirs after a kill. */
async function freePorts(count: number): Promise<number[]> {
  const holders = Array.from({ length: count }, () => createServer());
  const ports = await Promise.all(
    holders.map(
      (holder) =>
        new Promise<number>((resolve, reject) => {
          holder.once("error", reject);
          holder.listen(0, "127.0.0.1", () => resolve((holder.address() as AddressInfo).port));
        }),
    ),
  );
  await Promise.all(holders.map((holder) => new Promise((resolve) => holder.close(resolve))));
  return ports;
}
