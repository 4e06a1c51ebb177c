-- Sessions of a period, and those of a night of any system.
CREATE INDEX session_started ON session (started);
CREATE INDEX session_of_night ON session (night);
