/**
 * When messages go out to the database thread, and how many are there at once.
 *
 * Where the event loop has more to do than the disk, one waits at the thread while another is committed,
 * so that the disk never waits for the loop; they go out at once. Where the loop mostly waits for the
 * disk, that would split callers over two commits where one could serve them all: then a message goes out
 * at the end of a turn of the loop, and one after answers when all that they set off has come. The two are
 * even when a commit takes as long as the loop needs for all callers: in either way it is then at work
 * half of the time.
 */
import { atTurnEnd } from "../../runtime/turn.js";

const OF_BUSY_LOOP = 2;
const OF_WAITING_LOOP = 1;

export interface PacePorts {
  /** Whether the event loop is at work most of the time. */
  readonly isBusy: () => boolean;
  /** How many messages are at the thread. */
  readonly underWay: () => number;
  /** Sends what waits, while `allows` says so. */
  readonly flush: () => void;
}

export class Pace {
  readonly #ports: PacePorts;
  #due = false;

  constructor(ports: PacePorts) {
    this.#ports = ports;
  }

  /** Whether another message may go out now. */
  allows(): boolean {
    const { isBusy, underWay } = this.#ports;
    return underWay() < (isBusy() ? OF_BUSY_LOOP : OF_WAITING_LOOP);
  }

  /** Something waits. */
  waits(): void {
    const { isBusy, flush } = this.#ports;
    if (this.#due || !this.allows()) return;
    this.#due = true;
    (isBusy() ? queueMicrotask : atTurnEnd)(() => {
      this.#due = false;
      flush();
    });
  }

  /** A message was answered; its callers have not heard of it yet. */
  answered(): void {
    const { isBusy, flush } = this.#ports;
    if (isBusy()) flush();
    else if (!this.#due) {
      this.#due = true;
      // What they call for at the end of this turn, in lists, comes before the end of the next.
      atTurnEnd(() => {
        this.#due = false;
        this.waits();
      });
    }
  }
}
