/**
 * What the routes share: the ports they were given, and what hangs on every request. A request gets
 * its `entry` (the route it met) and its ids in the first hook; whatever answers it afterwards, an
 * error handler included, finds there how to shape the answer.
 */
import type { Engine } from "../engine/api.js";
import type { Clock } from "../runtime/clock.js";
import type { Logger } from "../runtime/logger.js";
import type { PlansHere } from "../plan/asked.js";
import type { TaskRegistry } from "../task/registry.js";
import type { Leaving } from "./leaving.js";
import type { HttpMeter, Metrics } from "./metrics.js";
import type { ErrorShape } from "./wire.js";

export interface HttpSettings {
  /** Off: every /jobs and /plans path is 404. */
  readonly asyncEnabled: boolean;
  /** Null: everything is open. */
  readonly authToken: string | null;
  readonly requestSizeLimitBytes: number;
  /** The task of a `POST /jobs` that names none; null: the only one, if there is only one. */
  readonly defaultTask: string | null;
}

/** Why nothing can be asked of the engine yet; anyone may read it. */
export const NOT_REACHED = "the ledger has not been reached yet";

export interface HttpContext {
  readonly tasks: TaskRegistry;
  /** Null until the ledger is reached. */
  readonly engineIfThere: () => Engine | null;
  /** To be asked for while a request is served, before which the gate has seen that it is there. */
  readonly engine: Engine;
  /** As the engine; null where plans are not served: every /plans path is 404. */
  readonly plans: (() => PlansHere) | null;
  readonly settings: HttpSettings;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  /** The waits under way: closing the server ends them with what they know. */
  readonly waits: Set<Leaving>;
  /** True once the server has begun to close. */
  closing: boolean;
}

/** One path of the API. */
export interface Entry {
  /** As in the OpenAPI document, and the `route` label of the metrics. */
  readonly pattern: string;
  readonly shape: ErrorShape;
  readonly isPublic: boolean;
  /** Whether it is answered before the engine is there. */
  readonly isEarly: boolean;
  meter(method: string): HttpMeter;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Null until the first hook has run, and for requests that met no route. */
    entry: Entry | null;
    /** The body's `req_id`, echoed in the reply's body; without one the header's stands, or a made one: `id`. */
    requestId: string | undefined;
    /** Monotonic, ms. */
    startedMs: number;
  }
}
