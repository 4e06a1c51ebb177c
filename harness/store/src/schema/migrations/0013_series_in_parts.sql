-- The figures that the last judged night of a system has looked at, some metrics in each row: one value for all of them takes several
-- times its size of memory, to be read and to be written. What was kept is read from history once more.
DROP TABLE judged_series;
CREATE TABLE judged_series (
    system TEXT    NOT NULL,
    part   INTEGER NOT NULL,
    night  INTEGER NOT NULL,
    data   BLOB    NOT NULL,
    PRIMARY KEY (system, part)
) STRICT;
