/**
 * The database thread: owns the connection, so that waiting for the disk or for another process's
 * lock never holds up the main thread. All messages that wait when it turns to them become one
 * transaction. It ends when it is told to close, or when the database could not be opened.
 */
import {
  parentPort,
  receiveMessageOnPort,
  workerData,
  type MessagePort,
} from "node:worker_threads";
import { systemClock } from "../../runtime/clock.js";
import { explain } from "./failures.js";
import { ForeignChanges } from "./foreign-changes.js";
import { packOutcomes, unpackBatch } from "./packing.js";
import type { Batch, FromThread, ToThread, LedgerThreadData } from "./protocol.js";
import { Store } from "./store.js";

function serve(port: MessagePort, { path, create, nowMs }: LedgerThreadData): void {
  const say = (message: FromThread): void => {
    port.postMessage(message);
  };
  let store: Store;
  try {
    store = new Store({ path, create, nowMs, clock: systemClock });
  } catch (error) {
    say({ kind: "refused", failure: explain(error, path).failure });
    port.close();
    return;
  }
  const changes = new ForeignChanges({
    walPath: `${path}-wal`,
    clock: systemClock,
    dataVersion: () => store.dataVersion(),
    hasWork: () => store.queued() > 0,
    report: (change) => {
      say({ kind: "foreign", ...change });
    },
  });
  const work = (batches: readonly Batch[]): void => {
    for (const outcomes of store.run(batches)) say(packOutcomes(outcomes));
    changes.looked(store.lookMs);
    changes.ask();
  };
  port.on("message", (first: ToThread) => {
    const waiting: Batch[] = [];
    let message: ToThread | undefined = first;
    while (message?.kind === "batch") {
      waiting.push(unpackBatch(message));
      const next = receiveMessageOnPort(port) as { readonly message: ToThread } | undefined;
      message = next?.message;
    }
    if (waiting.length > 0) work(waiting);
    if (message?.kind !== "close") return;
    changes.close();
    store.close();
    say({ kind: "closed" });
    port.close();
  });
  say({ kind: "opened" });
}

if (parentPort === null) throw new Error("the ledger's thread was not started as a thread");
serve(parentPort, workerData as LedgerThreadData);
