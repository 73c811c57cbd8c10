/**
 * A process that works on one job system: `node actor.js PEER PLACE`, PLACE being JSON. It does what
 * its parent asks (`verbs.ts`), one call at a time, and ends when its parent has gone.
 */
import type { OpenPeer, Place } from "./peers/peer.js";
import { verbsOf } from "./verbs.js";

interface Call {
  readonly verb: string;
  readonly args: readonly unknown[];
}

const [, , name = "", placeJson = "{}"] = process.argv;

function send(message: object): void {
  process.send?.(message);
}

const { open } = (await import(`./peers/${name}.js`)) as { open: OpenPeer };
const peer = await open(JSON.parse(placeJson) as Place);
const verbs = verbsOf(peer, (run) => send({ run })) as Record<
  string,
  (...args: readonly unknown[]) => Promise<unknown>
>;

process.on("message", ({ verb, args }: Call) => {
  void answer(verb, args);
});
process.once("disconnect", () => {
  void peer.close().finally(() => process.exit(0));
});

async function answer(verb: string, args: readonly unknown[]): Promise<void> {
  try {
    const call = verbs[verb];
    if (call === undefined) throw new Error(`an actor has no verb ${verb}`);
    send({ value: await call(...args) });
  } catch (error) {
    send({ error: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  }
}

send({ ready: true });
