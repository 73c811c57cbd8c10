-- The table of all jobs. Times are kept in whole milliseconds. `:schema` stands for the schema's name.
-- Free room in each page (fillfactor) keeps a beat on the page of its row, and the versions that a job
-- leaves behind as it moves; vacuum comes early, since each job leaves two of them.
CREATE TABLE :schema.async_jobs (
  job_id varchar(26) COLLATE "C" NOT NULL,
  plan_id varchar(26) COLLATE "C",
  phase text,
  task text COLLATE "C" NOT NULL,
  queue text NOT NULL,
  status text NOT NULL,
  priority integer NOT NULL,
  run_at timestamptz NOT NULL,
  attempt integer NOT NULL,
  max_attempts integer NOT NULL,
  timeout_ms bigint,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz,
  last_heartbeat timestamptz,
  cancel_requested_at timestamptz,
  worker_id text COLLATE "C",
  schema_version integer NOT NULL,
  error_message text,
  request_id text,
  idempotency_key text,
  progress_json text,
  payload_json text NOT NULL,
  result_json text,
  CONSTRAINT pk_async_jobs PRIMARY KEY (job_id),
  CONSTRAINT ck_async_jobs_phase CHECK (phase IN ('execute', 'apply')),
  CONSTRAINT ck_async_jobs_status CHECK (
    status IN ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled')
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
      WHEN 'queued' THEN true
      ELSE error_message IS NULL
    END
  ),
  CONSTRAINT ck_async_jobs_result CHECK (result_json IS NULL OR status = 'succeeded')
) WITH (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_analyze_scale_factor = 0.05
);

-- What a claim reads, and in its order; the task first, so that jobs nobody here runs cost nothing.
CREATE INDEX ix_async_jobs_status ON :schema.async_jobs (task, priority DESC, run_at, job_id)
  WHERE status = 'queued';
-- What runs, by its owner. Partial like the one above: it is as small as the work under way.
CREATE INDEX ix_async_jobs_worker_id ON :schema.async_jobs (worker_id, job_id)
  WHERE status = 'running';
CREATE INDEX ix_async_jobs_plan_id ON :schema.async_jobs (plan_id) WHERE plan_id IS NOT NULL;
-- Block ranges: next to nothing to keep, and rows stand about in the order in which they came.
CREATE INDEX ix_async_jobs_created_at ON :schema.async_jobs USING brin (created_at);
-- What retention reads: the ended, oldest first. New entries go to its right end, a batch at a time.
CREATE INDEX ix_async_jobs_finished_at ON :schema.async_jobs (finished_at)
  WHERE finished_at IS NOT NULL;

-- How many jobs there are, in one row that changes in the same statements as the jobs: admission and
-- counts cost the same however many there are. `granted` is how many the last submit was given: an
-- UPDATE can only return what it has written. The page is left nearly empty, so that new versions of
-- the row stay on it and old ones are cleared away in passing.
CREATE TABLE :schema.async_counts (
  only_row integer NOT NULL,
  queued bigint NOT NULL,
  running bigint NOT NULL,
  terminal bigint NOT NULL,
  granted bigint NOT NULL,
  CONSTRAINT pk_async_counts PRIMARY KEY (only_row),
  CONSTRAINT ck_async_counts_only_row CHECK (only_row = 1),
  CONSTRAINT ck_async_counts_queued CHECK (queued >= 0),
  CONSTRAINT ck_async_counts_running CHECK (running >= 0),
  CONSTRAINT ck_async_counts_terminal CHECK (terminal >= 0)
) WITH (fillfactor = 10, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);
INSERT INTO :schema.async_counts (only_row, queued, running, terminal, granted)
VALUES (1, 0, 0, 0, 0);
