-- One record per key, whatever the task. Partial: a job without a key is not in it.
CREATE UNIQUE INDEX ux_async_jobs_idempotency_key ON async_jobs (idempotency_key)
  WHERE idempotency_key IS NOT NULL;
