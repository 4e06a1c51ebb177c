-- Who holds a session, so that a process id of another container is not taken for one of this, and a sign of its life: a counter
-- that its owner increases as long as it lives. `selection` is a digest of the names of the selected cases; '' is not known.
ALTER TABLE session ADD COLUMN owner_pid_namespace TEXT NOT NULL DEFAULT '';
ALTER TABLE session ADD COLUMN heartbeat INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN selection TEXT NOT NULL DEFAULT '';

-- When an attempt began and was launched, for who takes it over. `swept`: `muster sweep` was about to remove it.
ALTER TABLE job ADD COLUMN begun INTEGER;
ALTER TABLE job ADD COLUMN launched_at INTEGER;
ALTER TABLE job ADD COLUMN swept INTEGER NOT NULL DEFAULT 0;
