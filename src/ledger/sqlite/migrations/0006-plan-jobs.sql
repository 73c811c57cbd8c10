-- The jobs of a plan, in their order. Partial: nearly all jobs have none and are not in it.
CREATE INDEX ix_async_jobs_plan_id ON async_jobs (plan_id, job_id) WHERE plan_id IS NOT NULL;
