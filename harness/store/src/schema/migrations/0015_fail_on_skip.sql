-- Whether a case that is skipped fails the session (`--fail-on-skip`). Sessions of earlier versions did not.
ALTER TABLE session ADD COLUMN fail_on_skip INTEGER NOT NULL DEFAULT 0;
