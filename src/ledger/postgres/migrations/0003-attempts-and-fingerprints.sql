-- What went wrong with attempts that were queued again, as a JSON array; and the fingerprint of the
-- payload of a job that came with an idempotency key. Columns without a default: no row is written anew.
ALTER TABLE :schema.async_jobs
  ADD COLUMN attempt_errors text,
  ADD COLUMN payload_fingerprint text;
