-- What is kept of plans. Jobs know a plan's id without a foreign key, and runs know their job's: each
-- outlives the other. The large columns stand last: what is read of a run stops before its patch.
CREATE TABLE plans (
  plan_id TEXT NOT NULL PRIMARY KEY,
  name TEXT NOT NULL,
  workspace TEXT NOT NULL,
  file TEXT,
  created_at TEXT NOT NULL,
  used_at TEXT NOT NULL,
  -- The name first: it is what people look for.
  CONSTRAINT ux_plans_name UNIQUE (name, workspace)
);
CREATE INDEX ix_plans_used_at ON plans (used_at, plan_id);

CREATE TABLE plan_runs (
  job_id TEXT NOT NULL PRIMARY KEY,
  plan_id TEXT NOT NULL REFERENCES plans (plan_id) ON DELETE CASCADE,
  phase TEXT NOT NULL,
  created_at TEXT NOT NULL,
  definition_json TEXT NOT NULL,
  outcome_json TEXT,
  patch BLOB,
  CONSTRAINT ck_plan_runs_phase CHECK (phase = 'execute' OR phase = 'apply')
);
CREATE INDEX ix_plan_runs_plan_id ON plan_runs (plan_id, created_at, job_id);

CREATE TABLE plan_steps (
  job_id TEXT NOT NULL REFERENCES plan_runs (job_id) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  record_json TEXT NOT NULL,
  log TEXT NOT NULL,
  CONSTRAINT pk_plan_steps PRIMARY KEY (job_id, step)
);

-- With the job's id in it, the jobs of a plan come in order; 0006 makes it.
DROP INDEX ix_async_jobs_plan_id;
