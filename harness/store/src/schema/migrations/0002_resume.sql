-- What a later process must know to take a job over: how long it may still wait and run.
ALTER TABLE job ADD COLUMN limits TEXT;
