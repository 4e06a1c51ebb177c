-- The state of the last attempt at each case. Small rows of their own, because they change often. `change` is the number of the
-- transaction that wrote the row, counted within the session: what is greater than N has changed since N. `nodes` is JSON.
CREATE TABLE live (
    "case"  INTEGER PRIMARY KEY REFERENCES "case" (id),
    session INTEGER NOT NULL,
    change  INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    state   TEXT    NOT NULL CHECK (state IN ('waiting', 'pending', 'running', 'ended')),
    since   INTEGER NOT NULL,
    note    TEXT,
    nodes   TEXT
) STRICT;

CREATE INDEX live_change ON live (session, change);

-- What earlier versions have stored: the last result of each case, or a job without a result.
INSERT INTO live ("case", session, change, attempt, state, since)
SELECT c.id, c.session, 1, a.number, 'ended', a.finished FROM "case" c JOIN attempt a ON a."case" = c.id
WHERE a.number = (SELECT max(number) FROM attempt WHERE "case" = c.id);

INSERT INTO live ("case", session, change, attempt, state, since)
SELECT j."case", j.session, 1, max(j.attempt), 'pending', coalesce(j.launched_at, j.begun, s.started)
FROM job j JOIN session s ON s.number = j.session
WHERE NOT EXISTS (SELECT 1 FROM attempt a WHERE a."case" = j."case" AND a.number >= j.attempt) GROUP BY j."case"
ON CONFLICT ("case") DO UPDATE SET attempt = excluded.attempt, state = excluded.state, since = excluded.since;
