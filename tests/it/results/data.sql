-- Forty nights of one system, 2026-10-16 to 2026-11-24, as Muster stores them. Noise is under one percent, and the same in each run.
--   triad %size=2G   bandwidth is 5 % less since 2026-11-14
--   triad %size=1G   nothing changes; its reference does, on 2026-11-10
--   hpl              until 2026-11-12
--   hpcg             since 2026-11-18
--   ior, osu         fail on 2026-11-24, as node n7 is lost; good before
--   smoke            fails since 2026-11-20: the driver of n3 changed
CREATE TEMPORARY TABLE days AS
    WITH RECURSIVE day (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM day WHERE n < 39) SELECT n, 20742 + n AS night FROM day;
CREATE TEMPORARY TABLE checks (n INTEGER, name TEXT, tags TEXT, parameters TEXT, since INTEGER, until INTEGER);
INSERT INTO checks VALUES
    (1, 'triad %size=1G', '["nightly","memory"]', '[["size","1G"]]', 0, 39), (2, 'triad %size=2G', '["nightly","memory"]', '[["size","2G"]]', 0, 39),
    (3, 'hpl', '["nightly"]', '[]', 0, 27), (4, 'hpcg', '["nightly"]', '[]', 33, 39), (5, 'ior', '["io"]', '[]', 0, 39),
    (6, 'osu', '["network"]', '[]', 0, 39), (7, 'smoke', '["daily"]', '[]', 0, 39);

INSERT INTO session (number, id, started, ended, command, system, user_name, host, workdir, version, num_cases, interrupted, owner_host,
    owner_pid, owner_start_time, owner_boot_id, extras, night)
SELECT n + 1, strftime('%Y%m%d', night * 86400, 'unixepoch') || '-220000-abcdefgh', night * 86400000000 + 79200000000,
    night * 86400000000 + 82800000000, '["muster","-r"]', 'eidf', CASE WHEN n % 2 THEN 'ada' ELSE 'bob' END, 'login1', '/home/ada',
    CASE WHEN n < 35 THEN '0.1.0' ELSE '0.2.0' END, 7, 0, 'login1', 1, 1, 'b',
    CASE WHEN n >= 29 THEN '[["release","26.11"]]' ELSE '[["release","26.10"]]' END, night FROM days;
INSERT INTO night (system, night, begins, ends, time_zone, state)
SELECT 'eidf', night, night * 86400000000 + 43200000000, night * 86400000000 + 129600000000, 'UTC', 'ended' FROM days;

INSERT INTO "case" (id, session, display, check_name, hash, system, partition, environ, about)
SELECT d.n * 10 + c.n, d.n + 1, c.name, substr(c.name || ' ', 1, instr(c.name || ' ', ' ') - 1), printf('%08x', c.n), 'eidf', 'gpu', 'default',
    '{"descr":"","tags":' || c.tags || ',"maintainers":[],"file":"checks.yaml","parameters":' || c.parameters
    || ',"scheduler":"k8s","num_tasks":1}' FROM days d JOIN checks c ON d.n BETWEEN c.since AND c.until;
INSERT INTO attempt (id, "case", number, outcome, reason, phase, cause, begun, finished, detail)
SELECT d.n * 10 + c.n, d.n * 10 + c.n, 1,
    CASE WHEN d.n = 39 AND c.n IN (5, 6) THEN 'disrupted' WHEN d.n >= 35 AND c.n = 7 THEN 'fail' ELSE 'pass' END,
    CASE WHEN d.n = 39 AND c.n IN (5, 6) THEN 'node' WHEN d.n >= 35 AND c.n = 7 THEN 'sanity' END, 'run',
    CASE WHEN d.n = 39 AND c.n IN (5, 6) THEN 'node n7 NotReady' WHEN d.n >= 35 AND c.n = 7 THEN 'pattern ''all well'' was not found' END,
    d.night * 86400000000 + 79300000000, d.night * 86400000000 + 79400000000 + c.n,
    '{"warnings":[],"nodes":["' || CASE WHEN c.n IN (5, 6) THEN 'n7' ELSE 'n3' END || '"],"exits":[],"log_tail":null,"look":[],"delete":[],"leftovers":[]}'
FROM days d JOIN checks c ON d.n BETWEEN c.since AND c.until;

INSERT INTO subject (id, system, partition, environ, name) SELECT n, 'eidf', 'gpu', 'default', name FROM checks WHERE n <= 4;
INSERT INTO metric (id, subject, variable, key, unit, direction)
SELECT n, n, CASE WHEN n <= 2 THEN 'bandwidth' ELSE 'flops' END, '', CASE WHEN n <= 2 THEN 'GB/s' ELSE 'GFLOP/s' END, 'higher' FROM checks WHERE n <= 4;
INSERT INTO basis (id, unit, check_hash, manifest_hash) VALUES (1, 'GB/s', 'c1', ''), (2, 'GFLOP/s', 'c2', '');
INSERT INTO run_figure (metric, night, "case", repeat, session, finished, reference, lower, value, basis)
SELECT c.n, d.night, d.n * 10 + c.n, 0, d.n + 1, d.night * 86400000000 + 79400000000 + c.n,
    CASE WHEN c.n <= 2 THEN CASE WHEN c.n = 1 AND d.night >= 20767 THEN 910 ELSE 900 END END, CASE WHEN c.n <= 2 THEN 850 END,
    (900.0 + 10 * c.n) * (1 + ((d.n * 37 + c.n * 11) % 21 - 10) / 1500.0) * CASE WHEN c.n = 2 AND d.n >= 29 THEN 0.95 ELSE 1 END,
    CASE WHEN c.n <= 2 THEN 1 ELSE 2 END
FROM days d JOIN checks c ON d.n BETWEEN c.since AND c.until WHERE c.n <= 4;
INSERT INTO measurement (attempt, position, variable, value, unit, reference, lower, verdict, direction)
SELECT f."case", 0, m.variable, f.value, m.unit, f.reference, f.lower, CASE WHEN m.id <= 2 THEN 'pass' ELSE 'none' END, 'higher'
FROM run_figure f JOIN metric m ON m.id = f.metric;

INSERT INTO node (id, system, name, uid, first_seen, last_seen) VALUES (1, 'eidf', 'n3', 'u3', 0, 0), (2, 'eidf', 'n7', 'u7', 0, 0);
INSERT INTO node_fact (node, key, from_time, until, value) VALUES
    (1, 'driver', 0, 20777 * 86400000000, '550.54'), (1, 'driver', 20777 * 86400000000, NULL, '570.12'), (1, 'kernel', 0, NULL, '6.1');
INSERT INTO member (attempt, rank, node) SELECT id, 0, CASE WHEN id % 10 IN (5, 6) THEN 2 ELSE 1 END FROM attempt;
