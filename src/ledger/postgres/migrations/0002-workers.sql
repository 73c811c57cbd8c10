-- The workers that use this ledger; each writes its own row with every beat.
CREATE TABLE :schema.async_workers (
  worker_id text COLLATE "C" NOT NULL,
  host text NOT NULL,
  pid integer NOT NULL,
  pid_stamp text NOT NULL,
  state text NOT NULL,
  tasks_json text NOT NULL,
  max_workers integer NOT NULL,
  processed bigint NOT NULL,
  failed bigint NOT NULL,
  cancelled bigint NOT NULL,
  started_at timestamptz NOT NULL,
  last_heartbeat timestamptz NOT NULL,
  CONSTRAINT pk_async_workers PRIMARY KEY (worker_id),
  CONSTRAINT ck_async_workers_state CHECK (state IN ('running', 'draining'))
) WITH (fillfactor = 50);
