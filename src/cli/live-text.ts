/**
 * Text on a terminal that is written over by what comes next. Lines are cut to the terminal's width,
 * so that each takes one row and the way back to the first is known. A signal that ends the process
 * meanwhile (Ctrl-C) takes it off the screen first.
 */
import { clip } from "./text.js";

/** What is needed of a terminal's stream. */
export interface Screen {
  write(text: string): unknown;
  /** Changes with the window. */
  readonly columns?: number;
  readonly rows?: number;
}

/** What is needed of the process. */
export interface Signals {
  readonly pid: number;
  on(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  off(signal: NodeJS.Signals, listener: (signal: NodeJS.Signals) => void): unknown;
  kill(pid: number, signal: NodeJS.Signals): unknown;
}

/** Signals that end a command. */
export const ENDING = ["SIGINT", "SIGTERM"] as const;

const UP = (rows: number): string => (rows > 0 ? `\u001b[${rows}A` : "");
const ERASE_BELOW = "\u001b[J";
/** Of a terminal that does not tell its size: what the oldest ones had. */
const [DEFAULT_COLUMNS, DEFAULT_ROWS] = [80, 24];

export class LiveText {
  readonly #screen: Screen;
  readonly #signals: Signals | null;
  #rows = 0;
  #shown = "";

  /** @param signals null: nobody sends any. */
  constructor(screen: Screen, signals: Signals | null = null) {
    this.#screen = screen;
    this.#signals = signals;
  }

  /** Takes the place of what was shown before. What does not fit on the screen is left out. */
  show(text: string): void {
    const { columns = DEFAULT_COLUMNS, rows = DEFAULT_ROWS } = this.#screen;
    const lines = text
      .split("\n")
      .slice(0, Math.max(1, rows - 1))
      .map((line) => clip(line, Math.max(1, columns - 1)));
    const shown = lines.join("\n");
    if (shown === this.#shown) return;
    if (this.#rows === 0) for (const signal of ENDING) this.#signals?.on(signal, this.#ended);
    this.#screen.write(`${this.#back()}${shown}`);
    this.#shown = shown;
    this.#rows = lines.length;
  }

  /** Takes it off the screen. */
  clear(): void {
    if (this.#rows === 0) return;
    for (const signal of ENDING) this.#signals?.off(signal, this.#ended);
    this.#screen.write(this.#back());
    this.#rows = 0;
    this.#shown = "";
  }

  /** With no listener left, the signal does what it does: whoever waits for the process sees it. */
  readonly #ended = (signal: NodeJS.Signals): void => {
    this.clear();
    this.#signals?.kill(this.#signals.pid, signal);
  };

  #back(): string {
    return this.#rows === 0 ? "" : `\r${UP(this.#rows - 1)}${ERASE_BELOW}`;
  }
}
