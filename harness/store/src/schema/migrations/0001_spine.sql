-- The tables of design 2's words. Times are microseconds since the epoch; JSON is TEXT.
-- `number` and `id` are given out by the writer under the write lock, so that rows of one session lie together.

CREATE TABLE session (
    number           INTEGER PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    started          INTEGER NOT NULL,
    ended            INTEGER,
    command          TEXT    NOT NULL,
    system           TEXT    NOT NULL,
    user_name        TEXT    NOT NULL,
    host             TEXT    NOT NULL,
    workdir          TEXT    NOT NULL,
    version          TEXT    NOT NULL,
    num_cases        INTEGER NOT NULL,
    interrupted      INTEGER NOT NULL,
    owner_host       TEXT    NOT NULL,
    owner_pid        INTEGER NOT NULL,
    owner_start_time INTEGER NOT NULL,
    owner_boot_id    TEXT    NOT NULL
) STRICT;

CREATE TABLE "case" (
    id        INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL REFERENCES session (number),
    display   TEXT    NOT NULL,
    check_name TEXT   NOT NULL,
    hash      TEXT    NOT NULL,
    system    TEXT    NOT NULL,
    partition TEXT    NOT NULL,
    environ   TEXT    NOT NULL,
    about     TEXT    NOT NULL
) STRICT;

-- A history is one case over all sessions; within a session a case is unique.
CREATE UNIQUE INDEX case_history ON "case" (display, system, partition, environ, session);
CREATE INDEX case_session ON "case" (session);

-- Written before a launch, so that whatever a killed session left can be found and removed.
-- An identifier is only unique within its session: eight letters repeat within some 500,000 attempts.
CREATE TABLE job (
    session    INTEGER NOT NULL REFERENCES session (number),
    identifier TEXT    NOT NULL,
    "case"     INTEGER NOT NULL REFERENCES "case" (id),
    attempt    INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('intent', 'launched', 'ended', 'cleaned')),
    stage      TEXT    NOT NULL,
    plan       TEXT    NOT NULL,
    rules      TEXT    NOT NULL,
    launched   TEXT,
    marks      TEXT,
    UNIQUE (session, identifier)
) STRICT;

CREATE INDEX job_open ON job (session) WHERE state <> 'cleaned';

-- One finished attempt. `detail` is the part of the result that no query asks for.
CREATE TABLE attempt (
    id         INTEGER PRIMARY KEY,
    "case"     INTEGER NOT NULL REFERENCES "case" (id),
    number     INTEGER NOT NULL,
    identifier TEXT,
    outcome    TEXT    NOT NULL,
    reason     TEXT,
    phase      TEXT    NOT NULL,
    cause      TEXT,
    begun      INTEGER NOT NULL,
    launched   INTEGER,
    started    INTEGER,
    ended      INTEGER,
    finished   INTEGER NOT NULL,
    folder     TEXT,
    detail     TEXT    NOT NULL,
    UNIQUE ("case", number)
) STRICT;

-- `value` is NULL for NaN, which SQLite cannot store; infinities are stored as such. `step` is the place in a live
-- series, NULL for a figure of the whole run. No `reference`: the figure was not judged.
CREATE TABLE measurement (
    attempt   INTEGER NOT NULL REFERENCES attempt (id),
    position  INTEGER NOT NULL,
    variable  TEXT    NOT NULL,
    key       TEXT,
    section   TEXT,
    node      TEXT,
    step      INTEGER,
    value     REAL,
    unit      TEXT    NOT NULL,
    reference REAL,
    lower     REAL,
    upper     REAL,
    verdict   TEXT    NOT NULL,
    reason    TEXT,
    direction TEXT,
    PRIMARY KEY (attempt, position)
) STRICT, WITHOUT ROWID;
