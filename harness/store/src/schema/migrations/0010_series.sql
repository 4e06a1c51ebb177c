-- The figures that the last judged night of a system has looked at, in one value, so that the next need not read them one by one. What
-- changes history up to that night deletes them.
CREATE TABLE judged_series (
    system TEXT    PRIMARY KEY,
    night  INTEGER NOT NULL,
    data   BLOB    NOT NULL
) STRICT;
