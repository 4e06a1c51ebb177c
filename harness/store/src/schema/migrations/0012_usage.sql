-- What an attempt has used of instances that are paid by time: NULL, if it used none. By type it is in `detail`. `cost` is at the prices
-- that the site file had then, in `currency`; NULL, if one of them was unknown.
ALTER TABLE attempt ADD COLUMN instance_seconds INTEGER;
ALTER TABLE attempt ADD COLUMN cost REAL;
ALTER TABLE attempt ADD COLUMN currency TEXT;
