/** How answers may look where they go: how wide, and whether in colour. */

export interface Look {
  /** Of the terminal; null where there is none and nothing is to be cut. */
  readonly columns: number | null;
  readonly colour: boolean;
}

export const PLAIN: Look = { columns: null, colour: false };

export type Paint = (text: string) => string;

export const plain: Paint = (text) => text;

/** SGR parameters (ECMA-48, 8.3.117). */
const HUES = { dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const;
type Hue = keyof typeof HUES;

/** States of jobs, as on the wire, of steps, and of workers. */
const HUE_OF: ReadonlyMap<string, Hue> = new Map<string, Hue>([
  ["pending", "yellow"],
  ["running", "cyan"],
  ["done", "green"],
  ["failed", "red"],
  ["timeout", "red"],
  ["cancelled", "dim"],
  ["skipped", "dim"],
  ["draining", "yellow"],
  ["lost", "red"],
]);

export function painted(hue: Hue, { colour }: Look): Paint {
  return colour ? (text) => `\u001b[${HUES[hue]}m${text}\u001b[0m` : plain;
}

/** The colour of a state's word; other words have none. */
export function stateColour(state: string, look: Look): Paint {
  const hue = HUE_OF.get(state);
  return hue === undefined ? plain : painted(hue, look);
}

/**
 * Whether to colour: FORCE_COLOR, then NO_COLOR (https://no-color.org), then whether it is a
 * terminal that can. The order is Node's own.
 */
export function wantsColour(
  env: Readonly<Record<string, string | undefined>>,
  isTerminal: boolean,
): boolean {
  const force = env["FORCE_COLOR"];
  if (force !== undefined) return force !== "0" && force !== "false";
  if ((env["NO_COLOR"] ?? "") !== "") return false;
  return isTerminal && env["TERM"] !== "dumb";
}
