/** The shape of `GET /diagnostics`, for the OpenAPI document; src/http/diagnostics-json.ts makes it. */
import Type from "typebox";

const time = Type.String({ format: "date-time" });
const count = Type.Integer({ minimum: 0 });
const orNull = (schema: Type.TSchema): Type.TSchema => Type.Union([schema, Type.Null()]);

const Worker = Type.Object({
  worker_id: Type.String(),
  state: Type.Unsafe({ type: "string", enum: ["running", "draining", "lost"] }),
  processed: count,
  failed: count,
  cancelled: count,
  started_at: time,
  last_heartbeat: time,
  max_workers: Type.Integer({ minimum: 1 }),
  tasks: Type.Array(Type.String()),
  host: Type.String(),
  pid: Type.Integer(),
});

export const Diagnostics = Type.Object(
  {
    ok: Type.Boolean({ description: "No problems" }),
    problems: Type.Array(
      Type.Object({
        kind: Type.String({ description: "One word for machines, such as no_worker" }),
        message: Type.String({ description: "What is wrong, and what to do" }),
      }),
    ),
    async: Type.Object({
      enabled: Type.Boolean(),
      max_workers: Type.Integer(),
      poll_interval_ms: Type.Number(),
    }),
    ledger: Type.Object({
      kind: Type.String(),
      software: Type.String(),
      schema_version: orNull(Type.Integer()),
      latency_ms: Type.Number(),
      now: Type.String({ format: "date-time", description: "Its own clock" }),
    }),
    depth: Type.Object({
      queued: count,
      running: count,
      total: count,
      limit: Type.Integer({ description: "Bound on queued + running" }),
      oldest_queued_ms: orNull(Type.Number()),
    }),
    oldest_queued: orNull(
      Type.Object({ job_id: Type.String(), task: Type.String(), waited_ms: Type.Number() }),
    ),
    workers: Type.Array(Worker),
    stuck: Type.Array(
      Type.Object({
        job_id: Type.String(),
        task: Type.String(),
        worker_id: orNull(Type.String()),
        last_heartbeat: orNull(time),
      }),
      { description: "Running jobs whose owner seems to be gone" },
    ),
    unserved: Type.Array(Type.Object({ task: Type.String(), queued: count }), {
      description: "Tasks with waiting jobs that no living worker runs",
    }),
  },
  { $id: "Diagnostics" },
);
