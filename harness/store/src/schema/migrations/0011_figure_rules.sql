-- What the check of a metric says of its verdicts, as it was seen last: the smallest change, and from which step on the metric is too
-- noisy, both relative (NULL: as the site says); 1 for a metric that has no verdict.
ALTER TABLE metric ADD COLUMN min_effect REAL;
ALTER TABLE metric ADD COLUMN step_limit REAL;
ALTER TABLE metric ADD COLUMN is_ignored INTEGER NOT NULL DEFAULT 0;
