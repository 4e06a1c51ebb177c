-- Until which night a system was judged, and so which changes are stored: NULL is none. `revision` counts what has changed history
-- since, so that who judged meanwhile sees that it did.
CREATE TABLE judged (
    system   TEXT    PRIMARY KEY,
    night    INTEGER,
    revision INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A change of a metric, as it was reported. Earlier versions have written none.
--
-- `since` is the most likely first night of the new level, within since_lo to since_hi; `before` and `after` are medians; `effect` is
-- relative (-0.05), with its interval; `evidence` is that of the night in which it was `opened`, by the method of this version, with
-- `tempering` where `needed` would have been enough for one metric alone. `turn` and what is measured are those of the night in which
-- it was closed, or of the last judged one. `closed` is the night in which it was found to be over. `level_until` is the first night
-- of what has recovered, or the last night of what was dismissed.
DROP TABLE change;
CREATE TABLE change (
    metric      INTEGER NOT NULL REFERENCES metric (id),
    opened      INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    since_lo    INTEGER NOT NULL,
    since_hi    INTEGER NOT NULL,
    turn        TEXT    NOT NULL CHECK (turn IN ('worse', 'better', 'lower', 'higher')),
    before      REAL    NOT NULL,
    after       REAL    NOT NULL,
    effect      REAL,
    effect_lo   REAL,
    effect_hi   REAL,
    evidence    REAL    NOT NULL,
    tempering   REAL    NOT NULL,
    needed      REAL    NOT NULL,
    method      INTEGER NOT NULL,
    shape       TEXT    CHECK (shape IN ('step', 'drift')),
    state       TEXT    NOT NULL CHECK (state IN ('open', 'recovered', 'accepted', 'dismissed', 'superseded')),
    closed      INTEGER,
    level_until INTEGER,
    PRIMARY KEY (metric, opened)
) STRICT, WITHOUT ROWID;
