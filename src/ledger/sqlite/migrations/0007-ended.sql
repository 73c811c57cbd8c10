-- How many jobs have ended, ever. Whoever looks for ends knows by it how many there are to be found
-- since it last looked, whatever the clocks say that stamped them.
ALTER TABLE async_counts ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
