-- When the owner of a session has last shown that it lives, by the clock of the server. A file has no clock: NULL.
ALTER TABLE session ADD COLUMN heartbeat_at INTEGER;
