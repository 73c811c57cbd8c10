-- What is kept of plans. Jobs know a plan's id without a foreign key, and runs know their job's: each
-- outlives the other.
CREATE TABLE :schema.plans (
  plan_id varchar(26) COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  workspace text COLLATE "C" NOT NULL,
  file text,
  created_at timestamptz NOT NULL,
  used_at timestamptz NOT NULL,
  CONSTRAINT pk_plans PRIMARY KEY (plan_id),
  -- The name first: it is what people look for.
  CONSTRAINT ux_plans_name UNIQUE (name, workspace)
);
CREATE INDEX ix_plans_used_at ON :schema.plans (used_at, plan_id);

CREATE TABLE :schema.plan_runs (
  job_id varchar(26) COLLATE "C" NOT NULL,
  plan_id varchar(26) COLLATE "C" NOT NULL,
  phase text NOT NULL,
  created_at timestamptz NOT NULL,
  definition_json text NOT NULL,
  outcome_json text,
  patch bytea,
  CONSTRAINT pk_plan_runs PRIMARY KEY (job_id),
  CONSTRAINT fk_plan_runs_plan_id FOREIGN KEY (plan_id)
    REFERENCES :schema.plans (plan_id) ON DELETE CASCADE,
  CONSTRAINT ck_plan_runs_phase CHECK (phase IN ('execute', 'apply'))
);
CREATE INDEX ix_plan_runs_plan_id ON :schema.plan_runs (plan_id, created_at, job_id);

CREATE TABLE :schema.plan_steps (
  job_id varchar(26) COLLATE "C" NOT NULL,
  step integer NOT NULL,
  record_json text NOT NULL,
  log text NOT NULL,
  CONSTRAINT pk_plan_steps PRIMARY KEY (job_id, step),
  CONSTRAINT fk_plan_steps_job_id FOREIGN KEY (job_id)
    REFERENCES :schema.plan_runs (job_id) ON DELETE CASCADE
);

-- With the job's id in it, the jobs of a plan come in order; 0006 makes it.
DROP INDEX :schema.ix_async_jobs_plan_id;
