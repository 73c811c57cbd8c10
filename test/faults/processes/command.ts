/** One running command: what it said, when it ended, and signals for it. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { startChild, type ChildOptions } from "./children.js";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Command {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #looks = new Set<() => void>();
  #stdout = "";
  #over = false;

  constructor(options: ChildOptions) {
    this.#child = startChild(options);
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      this.#look();
    });
    this.ended = once(this.#child, "close").then(([code, signal]: unknown[]) => {
      this.#over = true;
      this.#look();
      return { code: code as number | null, signal: signal as NodeJS.Signals | null };
    });
  }

  get stdout(): string {
    return this.#stdout;
  }

  get over(): boolean {
    return this.#over;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.#over) this.#child.kill(signal);
  }

  /** Resolves with the match once the output has it; with null when the process ended without. */
  says(pattern: RegExp): Promise<RegExpExecArray | null> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = pattern.exec(this.#stdout);
        if (found === null && !this.#over) return;
        this.#looks.delete(look);
        resolve(found);
      };
      this.#looks.add(look);
      look();
    });
  }

  #look(): void {
    for (const look of this.#looks) look();
  }
}
