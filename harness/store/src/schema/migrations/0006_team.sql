-- What a team asks of the results: which night, which node, which files, how a figure changes over the nights.
--
-- session --night--> night                 case --(system, partition, environ, name after aliases)--> subject --> metric
--    |                                                                                                              |
--   case --> attempt --> measurement       each figure, in each attempt                                             |
--               |  '---> run_figure, night_figure, node_figure      the first measured attempt alone, by metric <-----'
--               '------> section, member --> node --> node_fact     where it ran
--
-- A night is a number: days since 1970-01-01 of the date of its evening, in the time zone of the site. It is the night of a system,
-- which a session, a subject and a metric have. run_figure, night_figure and node_figure are summaries: `muster results rebuild`
-- writes the same rows again from the tables above them. A table of series with a step is to come: measurement.step stays NULL.

-- The nights of a system. `begins` and `ends`: from one cut-off hour to the next. A killed harness leaves `running`.
CREATE TABLE night (
    system    TEXT    NOT NULL,
    night     INTEGER NOT NULL,
    begins    INTEGER NOT NULL,
    ends      INTEGER NOT NULL,
    time_zone TEXT    NOT NULL,
    state     TEXT    NOT NULL CHECK (state IN ('running', 'ended', 'interrupted')),
    PRIMARY KEY (system, night)
) STRICT, WITHOUT ROWID;

-- `night` is NULL in what earlier versions have stored, until `muster results rebuild` places it. `facts`: JSON, names and values
-- of what may explain a change: `site_hash`, `cluster.PARTITION`. Those of a case (`check_hash`, `manifest_hash`) are in its `about`.
ALTER TABLE session ADD COLUMN night INTEGER;
ALTER TABLE session ADD COLUMN facts TEXT NOT NULL DEFAULT '{}';
CREATE INDEX session_night ON session (system, night);

-- Why an attempt ran. Figures of another purpose than `run` are in node_figure alone.
ALTER TABLE attempt ADD COLUMN purpose TEXT NOT NULL DEFAULT 'run'
    CHECK (purpose IN ('run', 'retest', 'isolate', 'confirm', 'tune'));

-- One case over all sessions, by its name after aliases: copies of it (`--repeat`) are one subject. Rows are never deleted, nor are
-- those of `metric`: a session that runs keeps their ids.
CREATE TABLE subject (
    id        INTEGER PRIMARY KEY,
    system    TEXT    NOT NULL,
    partition TEXT    NOT NULL,
    environ   TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    UNIQUE (system, partition, environ, name)
) STRICT;

-- One figure over all nights. `key`: the row of a table, '' for a single figure. `unit` and `direction` (NULL: the check says none)
-- are the last that were seen.
CREATE TABLE metric (
    id        INTEGER PRIMARY KEY,
    subject   INTEGER NOT NULL REFERENCES subject (id),
    variable  TEXT    NOT NULL,
    key       TEXT    NOT NULL,
    unit      TEXT    NOT NULL,
    direction TEXT    CHECK (direction IN ('higher', 'lower')),
    UNIQUE (subject, variable, key)
) STRICT;

-- What two figures of a metric must have in common to be compared. '' is not known.
CREATE TABLE basis (
    id            INTEGER PRIMARY KEY,
    unit          TEXT NOT NULL,
    check_hash    TEXT NOT NULL,
    manifest_hash TEXT NOT NULL,
    UNIQUE (unit, check_hash, manifest_hash)
) STRICT;

-- The figure of a run: that of the first attempt at its case that was measured (pass, xfail, xpass, fail{performance}) with purpose
-- `run`; of a figure a section, the median of its sections. `repeat` is 0, and the number of the attempt where every attempt is a run
-- of its own (`--reruns`). `value` is NULL if it was no finite number. No reference to "case": deleting one would look through all.
CREATE TABLE run_figure (
    metric  INTEGER NOT NULL REFERENCES metric (id),
    night   INTEGER NOT NULL,
    "case"  INTEGER NOT NULL,
    repeat  INTEGER NOT NULL,
    value   REAL,
    basis   INTEGER NOT NULL REFERENCES basis (id),
    PRIMARY KEY (metric, night, "case", repeat)
) STRICT, WITHOUT ROWID;

-- `value`: the median of the runs of the night, `n` how many have a value, `spread` their standard deviation (NULL for fewer than
-- two), `basis` that of the last run. `flags`: 1 some runs have another basis and are left out, 2 some runs have no finite value.
CREATE TABLE night_figure (
    metric  INTEGER NOT NULL REFERENCES metric (id),
    night   INTEGER NOT NULL,
    value   REAL,
    n       INTEGER NOT NULL,
    spread  REAL,
    flags   INTEGER NOT NULL,
    basis   INTEGER NOT NULL REFERENCES basis (id),
    PRIMARY KEY (metric, night)
) STRICT, WITHOUT ROWID;

-- A machine. One that takes over the name of another has another `uid`: machine-id, uid of the Node, instance id; '' is not known.
-- `class`: nodes of one class may be compared. `topology`: where it hangs, outermost first, JSON. Both '' if nobody says.
CREATE TABLE node (
    id         INTEGER PRIMARY KEY,
    system     TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    uid        TEXT    NOT NULL,
    class      TEXT    NOT NULL DEFAULT '',
    topology   TEXT    NOT NULL DEFAULT '',
    first_seen INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    UNIQUE (system, name, uid)
) STRICT;

-- What was known of a node from one time on until another: `kernel`, `kubelet`, `driver`, `label.NAME`. Written when it changes;
-- `until` is NULL as long as it holds.
CREATE TABLE node_fact (
    node      INTEGER NOT NULL REFERENCES node (id),
    key       TEXT    NOT NULL,
    from_time INTEGER NOT NULL,
    until     INTEGER,
    value     TEXT    NOT NULL,
    PRIMARY KEY (node, key, from_time)
) STRICT, WITHOUT ROWID;

-- The figure of a run on one node: of the sections on it the median, or of a case that ran on one node alone. As in run_figure the
-- first measured attempt counts. `run` is the case, `purpose` that of the attempt.
CREATE TABLE node_figure (
    metric  INTEGER NOT NULL REFERENCES metric (id),
    node    INTEGER NOT NULL REFERENCES node (id),
    night   INTEGER NOT NULL,
    run     INTEGER NOT NULL,
    repeat  INTEGER NOT NULL,
    value   REAL,
    basis   INTEGER NOT NULL REFERENCES basis (id),
    purpose TEXT    NOT NULL,
    PRIMARY KEY (metric, node, night, run, repeat)
) STRICT, WITHOUT ROWID;

-- All nodes of an attempt, in the order of its tasks.
CREATE TABLE member (
    attempt INTEGER NOT NULL REFERENCES attempt (id) ON DELETE CASCADE,
    rank    INTEGER NOT NULL,
    node    INTEGER NOT NULL REFERENCES node (id),
    PRIMARY KEY (attempt, rank)
) STRICT, WITHOUT ROWID;

-- The pods (one row a container), instances and processes of an attempt, in the order of its stdout. `uid` distinguishes pods of one
-- name, `image` is what really ran: NAME@sha256:DIGEST. Either exit_code or signal is set, or neither if it is not known.
CREATE TABLE section (
    attempt   INTEGER NOT NULL REFERENCES attempt (id) ON DELETE CASCADE,
    position  INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    uid       TEXT,
    node      INTEGER REFERENCES node (id),
    image     TEXT,
    exit_code INTEGER,
    signal    INTEGER,
    started   INTEGER,
    ended     INTEGER,
    PRIMARY KEY (attempt, position)
) STRICT, WITHOUT ROWID;

-- The end of the log of an attempt that did not pass, without secrets and control characters. `bytes`: of the whole log.
CREATE TABLE attempt_log (
    attempt INTEGER PRIMARY KEY REFERENCES attempt (id) ON DELETE CASCADE,
    bytes   INTEGER NOT NULL,
    tail    TEXT    NOT NULL
) STRICT;

-- What a night was to run, and what came of it: `absent` has no result. `busy`: the nodes were not free in time. `node` is 0 unless
-- it was planned for one node.
CREATE TABLE planned (
    night   INTEGER NOT NULL,
    subject INTEGER NOT NULL REFERENCES subject (id),
    node    INTEGER NOT NULL DEFAULT 0,
    state   TEXT    NOT NULL CHECK (state IN ('run', 'skipped', 'busy', 'absent', 'cordoned')),
    PRIMARY KEY (night, subject, node)
) STRICT, WITHOUT ROWID;

-- A change of a metric, as it was reported. `since` is the most likely first night, within since_lo to since_hi; `effect` a ratio
-- (1.0 is none) with its interval; `word`: regressed, improved, changed, drifting, recovered; `evidence` in units of 1 to 1;
-- `method`: name and version of what found it. Late figures make another revision.
CREATE TABLE change (
    id         INTEGER PRIMARY KEY,
    metric     INTEGER NOT NULL REFERENCES metric (id),
    opened     INTEGER NOT NULL,
    revision   INTEGER NOT NULL DEFAULT 1,
    since      INTEGER NOT NULL,
    since_lo   INTEGER NOT NULL,
    since_hi   INTEGER NOT NULL,
    word       TEXT    NOT NULL,
    before     REAL,
    after      REAL,
    effect     REAL,
    effect_lo  REAL,
    effect_hi  REAL,
    evidence   REAL    NOT NULL,
    method     TEXT    NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('open', 'closed')),
    closed     INTEGER,
    annotation INTEGER,
    UNIQUE (metric, opened, revision)
) STRICT;

-- What people say. A scope that is NULL is all of them. `name` is a subject's name or a check's. From a night, until another, both
-- included; `until` is NULL for no end.
CREATE TABLE annotation (
    id         INTEGER PRIMARY KEY,
    kind       TEXT    NOT NULL CHECK (kind IN ('note', 'maintenance', 'accept', 'dismiss', 'known')),
    system     TEXT,
    partition  TEXT,
    environ    TEXT,
    name       TEXT,
    variable   TEXT,
    node       TEXT,
    session    TEXT,
    from_night INTEGER NOT NULL,
    until      INTEGER,
    author     TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    link       TEXT,
    created    INTEGER NOT NULL
) STRICT;

-- A renamed check (`stream`), parameter (`stream %size`) or case (`stream %size=2G`) keeps its history under its new name.
CREATE TABLE alias (
    old_name TEXT    PRIMARY KEY,
    new_name TEXT    NOT NULL,
    author   TEXT    NOT NULL,
    created  INTEGER NOT NULL
) STRICT;
