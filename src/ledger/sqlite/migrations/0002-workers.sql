-- The workers that use this ledger; each writes its own row with every beat.
CREATE TABLE async_workers (
  worker_id TEXT NOT NULL PRIMARY KEY,
  host TEXT NOT NULL,
  pid INTEGER NOT NULL,
  pid_stamp TEXT NOT NULL,
  state TEXT NOT NULL,
  tasks_json TEXT NOT NULL,
  max_workers INTEGER NOT NULL,
  processed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  started_at TEXT NOT NULL,
  last_heartbeat TEXT NOT NULL,
  CONSTRAINT ck_async_workers_state CHECK (state = 'running' OR state = 'draining')
);
