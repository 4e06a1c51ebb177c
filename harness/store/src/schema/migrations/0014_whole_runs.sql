-- A figure of a run is shown without its case, attempt and measurement, which lie far apart: with its session, when its attempt ended
-- (microseconds since 1970, UTC) and the bounds that the run's first measurement was held to. Without a session (its case is gone) it
-- is not shown.
ALTER TABLE run_figure ADD COLUMN session INTEGER;
ALTER TABLE run_figure ADD COLUMN finished INTEGER;
ALTER TABLE run_figure ADD COLUMN reference REAL;
ALTER TABLE run_figure ADD COLUMN lower REAL;
ALTER TABLE run_figure ADD COLUMN upper REAL;
UPDATE run_figure SET (session, finished, reference, lower, upper) =
    (SELECT s.number, coalesce(a.finished, s.started), m.reference, m.lower, m.upper
    FROM metric JOIN "case" c ON c.id = run_figure."case" JOIN session s ON s.number = c.session
    LEFT JOIN attempt a ON a."case" = c.id AND a.number = CASE WHEN run_figure.repeat > 0 THEN run_figure.repeat ELSE
        (SELECT min(number) FROM attempt WHERE "case" = c.id AND outcome IN ('pass', 'xfail', 'xpass', 'fail')
        AND coalesce(reason, '') NOT IN ('sanity', 'workload')) END
    LEFT JOIN measurement m ON m.attempt = a.id AND m.position = (SELECT min(position) FROM measurement
        WHERE attempt = a.id AND variable = metric.variable AND coalesce(key, '') = metric.key)
    WHERE metric.id = run_figure.metric);
