/**
 * How many messages are at the database thread at once.
 *
 * Where the event loop has more to do than the disk, one waits there while another is committed, so that
 * the disk never waits for the loop. Where the loop mostly waits for the disk, that would split callers
 * over two commits where one could serve them all: then a message goes out when the answers to the one
 * before have been heard, with what they set off. The two are even when a commit takes as long as the
 * loop needs for all callers: in either way it is then at work half of the time.
 */
const OF_BUSY_LOOP = 2;
const OF_WAITING_LOOP = 1;

export function mostMessages(loopIsBusy: boolean): number {
  return loopIsBusy ? OF_BUSY_LOOP : OF_WAITING_LOOP;
}
