-- What an attempt has used of instances that are paid by time: NULL, if it used none. By type it is in `detail`. `cost` is at the prices
-- that the site file had then, in `currency`; NULL, if one of them was unknown.
ALTER TABLE attempt ADD COLUMN instance_seconds INTEGER;
ALTER TABLE attempt ADD COLUMN cost REAL;
ALTER TABLE attempt ADD COLUMN currency TEXT;

-- Which cases were in quarantine is asked of every night.
CREATE INDEX attempt_quarantine ON attempt ("case") WHERE quarantine IS NOT NULL;
