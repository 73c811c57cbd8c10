-- What went wrong with attempts that were queued again, as a JSON array; and the fingerprint of the
-- payload of a job that came with an idempotency key. They stand behind the large columns, where they
-- cost nothing while they are null, as for nearly all jobs: a null is read from the row's header.
ALTER TABLE async_jobs ADD COLUMN attempt_errors TEXT;
ALTER TABLE async_jobs ADD COLUMN payload_fingerprint TEXT;
