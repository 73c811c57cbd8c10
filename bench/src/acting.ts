/** The parent's side of actor.ts: a job system in a process of its own. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { track } from "./children.js";
import { Missing } from "./missing.js";
import type { Place } from "./peers/peer.js";
import type { Verbs } from "./verbs.js";

export type PeerName = "jobtable" | "plainjob" | "pg-boss" | "graphile-worker" | "bullmq";

/** Those whose engines ask for a newer Node than the product's. */
const ON_NEWER_NODE: ReadonlySet<string> = new Set(["pg-boss", "graphile-worker"]);
const NEWER_NODE = join(import.meta.dirname, "../node_modules/node/bin/node");

type Answer<Verb extends keyof Verbs> = Awaited<ReturnType<Verbs[Verb]>>;

export interface Actor {
  readonly pid: number;
  call<Verb extends keyof Verbs>(
    verb: Verb,
    ...args: Parameters<Verbs[Verb]>
  ): Promise<Answer<Verb>>;
  /** Of the handlers that start after `call("work", true)`. */
  onRun(listener: (run: { readonly n: number; readonly at: number }) => void): void;
  stop(): Promise<void>;
}

type Message =
  | { readonly ready: true }
  | { readonly run: { readonly n: number; readonly at: number } }
  | { readonly value: unknown }
  | { readonly error: string };

/** The binary that runs a peer. @throws Missing */
export function nodeFor(peer: string): string {
  if (!ON_NEWER_NODE.has(peer)) return process.execPath;
  if (!existsSync(NEWER_NODE))
    throw new Missing("Node 24 for its peers: npm ci --prefix bench, with install scripts allowed");
  return NEWER_NODE;
}

export async function startActor(peer: PeerName, place: Place): Promise<Actor> {
  const child = track(
    fork(join(import.meta.dirname, "actor.js"), [peer, JSON.stringify(place)], {
      execPath: nodeFor(peer),
      execArgv: [],
    }),
    // Its server may have gone before it: then it would close its connections for ever.
    "SIGKILL",
  );
  const gone = once(child, "exit");
  let listener: (run: { readonly n: number; readonly at: number }) => void = () => undefined;
  let settle: ((message: Message) => void) | null = null;
  const next = (): Promise<Message> => new Promise((resolve) => (settle = resolve));
  child.on("message", (message: Message) => {
    if ("run" in message) listener(message.run);
    else settle?.(message);
  });
  child.once("exit", (code) => settle?.({ error: `${peer} ended with ${String(code)}` }));
  const first = await next();
  if ("error" in first) throw new Error(first.error);
  return {
    pid: child.pid ?? 0,
    async call<Verb extends keyof Verbs>(
      verb: Verb,
      ...args: Parameters<Verbs[Verb]>
    ): Promise<Answer<Verb>> {
      const answer = next();
      child.send({ verb, args });
      const message = await answer;
      if ("error" in message) throw new Error(`${peer}, ${verb}: ${message.error}`);
      // The actor answers with what the verb of this name returns.
      return ("value" in message ? message.value : null) as Answer<Verb>;
    },
    onRun(given) {
      listener = given;
    },
    async stop() {
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}
