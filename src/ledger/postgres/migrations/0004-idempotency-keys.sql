-- One record per key, whatever the task. Partial: a job without a key is not in it. The order is that
-- of bytes, which no update of the server's locales can change. `:concurrently` is empty where the table
-- is small: migrate.ts has more.
CREATE UNIQUE INDEX :concurrently ux_async_jobs_idempotency_key
  ON :schema.async_jobs (idempotency_key COLLATE "C") WHERE idempotency_key IS NOT NULL;
