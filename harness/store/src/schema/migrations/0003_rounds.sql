-- Several attempts of a case: which of them count, and what each is worth.
ALTER TABLE session ADD COLUMN counting TEXT NOT NULL DEFAULT 'last' CHECK (counting IN ('last', 'every'));
ALTER TABLE session ADD COLUMN extras TEXT NOT NULL DEFAULT '[]';

-- Copies of one case within a session have one history.
ALTER TABLE "case" ADD COLUMN hidden TEXT NOT NULL DEFAULT '';
DROP INDEX case_history;
CREATE UNIQUE INDEX case_history ON "case" (display, system, partition, environ, session, hidden);

-- `quarantine`: the reason and the last day, JSON. `restored_from`: the session in which it really ran, whose row a
-- history counts; this one is for the report of the joined session.
ALTER TABLE attempt ADD COLUMN flaky INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN quarantine TEXT;
ALTER TABLE attempt ADD COLUMN restored_from TEXT;
