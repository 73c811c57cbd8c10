/**
 * What the benchmarks ask of a job system. Each of peers/*.ts opens one, at its best documented
 * settings, in a process of its own (actor.ts). All jobs are of one task, `noop`.
 */

/** Where its store is. */
export interface Place {
  /** PostgreSQL. */
  readonly url?: string;
  /** A folder for SQLite files. */
  readonly folder?: string;
  readonly redisPort?: number;
  /** The product alone: `async_max_queue`; default: out of reach. */
  readonly bound?: number;
  /** The product alone: how many ended jobs are kept; default: its own. */
  readonly kept?: number;
  /** graphile-worker alone: as it is without settings, rather than for many jobs at once. */
  readonly plain?: boolean;
}

export interface Input {
  readonly n: number;
  readonly email: string;
  readonly template: string;
}

export interface Peer {
  /** One job, on record when it resolves. @returns the job's id where the peer has one. */
  submit(input: Input): Promise<unknown>;
  /** At most 1,000 jobs, in the way that the peer does fastest. @returns their ids where it is known. */
  submitMany(inputs: readonly Input[]): Promise<readonly string[]>;
  /**
   * Runs jobs in this process; `onRun` is called on the first line of each handler.
   * @returns stops that. Nothing else may be under way then.
   */
  work(onRun: (n: number) => void): Promise<() => Promise<void>>;
  /** Jobs that wait or run. */
  unfinished(): Promise<number>;
  /** All jobs on record, the ended included where they are kept. */
  recorded(): Promise<number>;
  /** Empties the store, so that each round finds the same. */
  wipe(): Promise<void>;
  /** @param perSecond as fast as it goes when 0. Ends jobs that wait. The product alone. */
  cancel?(ids: readonly string[], perSecond: number): Promise<void>;
  /** From the call of a submit to the news of its end. @throws where it did not succeed. The product alone. */
  life?(input: Input): Promise<Life>;
  close(): Promise<void>;
}

/** ms of the shared clock. */
export interface Life {
  readonly called: number;
  readonly answered: number;
  readonly ended: number;
}

export type OpenPeer = (place: Place) => Promise<Peer>;

/** About 60 bytes as JSON. */
export function input(n: number): Input {
  return { n, email: `user${String(n)}@example.com`, template: "welcome" };
}

/** @throws where a benchmark gave a place without what the peer needs: a bug of the benchmark. */
export function given<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new Error(`the place has no ${what}`);
  return value;
}

/** A silent logger of the shape that most take; errors are shown. */
export const LOGGER = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: console.error,
};
