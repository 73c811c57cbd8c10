-- The jobs of a plan, in their order. Partial: nearly all jobs have none and are not in it.
-- `:concurrently` is empty where the table is small: migrate.ts has more.
CREATE INDEX :concurrently ix_async_jobs_plan_id
  ON :schema.async_jobs (plan_id, job_id) WHERE plan_id IS NOT NULL;
