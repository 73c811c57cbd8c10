-- The table of all jobs. Times are UTC, ISO-8601 with Z and milliseconds, so that their order as text
-- is their order in time. The large columns stand last: a scan stops before their overflow pages.
-- The checks are written with OR, not IN: a list of more than two is built anew for each statement.
CREATE TABLE async_jobs (
  job_id TEXT NOT NULL PRIMARY KEY,
  plan_id TEXT,
  phase TEXT,
  task TEXT NOT NULL,
  queue TEXT NOT NULL,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL,
  run_at TEXT NOT NULL,
  attempt INTEGER NOT NULL,
  max_attempts INTEGER NOT NULL,
  timeout_ms INTEGER,
  created_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT,
  last_heartbeat TEXT,
  cancel_requested_at TEXT,
  worker_id TEXT,
  schema_version INTEGER NOT NULL,
  error_message TEXT,
  request_id TEXT,
  idempotency_key TEXT,
  progress_json TEXT,
  payload_json TEXT NOT NULL,
  result_json TEXT,
  CONSTRAINT ck_async_jobs_phase CHECK (phase IS NULL OR phase = 'execute' OR phase = 'apply'),
  CONSTRAINT ck_async_jobs_status CHECK (
    status = 'queued' OR status = 'running' OR status = 'succeeded'
    OR status = 'failed' OR status = 'timed_out' OR status = 'cancelled'
  ),
  CONSTRAINT ck_async_jobs_attempt CHECK (attempt >= 0 AND attempt <= max_attempts),
  CONSTRAINT ck_async_jobs_owner CHECK (
    status <> 'running'
    OR (worker_id IS NOT NULL AND started_at IS NOT NULL AND last_heartbeat IS NOT NULL)
  ),
  CONSTRAINT ck_async_jobs_finished CHECK (
    (finished_at IS NULL) = (status = 'queued' OR status = 'running')
  ),
  CONSTRAINT ck_async_jobs_error CHECK (
    CASE status
      WHEN 'failed' THEN error_message IS NOT NULL
      WHEN 'timed_out' THEN error_message IS NOT NULL
      WHEN 'queued' THEN 1
      ELSE error_message IS NULL
    END
  ),
  CONSTRAINT ck_async_jobs_result CHECK (result_json IS NULL OR status = 'succeeded')
);

-- What a claim reads, and in its order; the task first, so that jobs nobody here runs cost nothing.
CREATE INDEX ix_async_jobs_status ON async_jobs (task, priority DESC, run_at, job_id)
  WHERE status = 'queued';
-- What runs, by its owner. Partial like the one above: it is as small as the work under way.
CREATE INDEX ix_async_jobs_worker_id ON async_jobs (worker_id, job_id)
  WHERE status = 'running';
CREATE INDEX ix_async_jobs_plan_id ON async_jobs (plan_id) WHERE plan_id IS NOT NULL;
CREATE INDEX ix_async_jobs_created_at ON async_jobs (created_at);
-- What retention reads: the ended, oldest first.
CREATE INDEX ix_async_jobs_finished_at ON async_jobs (finished_at) WHERE finished_at IS NOT NULL;

-- How many jobs there are, in one row that changes in the same transactions as the jobs: admission
-- and counts cost the same however many there are.
CREATE TABLE async_counts (
  only_row INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
  queued INTEGER NOT NULL CHECK (queued >= 0),
  running INTEGER NOT NULL CHECK (running >= 0),
  terminal INTEGER NOT NULL CHECK (terminal >= 0)
);
INSERT INTO async_counts (only_row, queued, running, terminal) VALUES (1, 0, 0, 0);
