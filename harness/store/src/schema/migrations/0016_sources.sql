-- The source of a session's cases and what it is made from, so that another process can make it again. NULL: sessions of earlier versions
-- have only their command line.
ALTER TABLE session ADD COLUMN source TEXT;
ALTER TABLE session ADD COLUMN definition TEXT;

-- The purpose of an attempt is known before its result.
ALTER TABLE job ADD COLUMN purpose TEXT NOT NULL DEFAULT 'run';
