PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied TEXT NOT NULL) STRICT;
INSERT INTO schema_version VALUES(1,'2026-11-22 18:46:11');
INSERT INTO schema_version VALUES(2,'2026-11-22 18:46:11');
INSERT INTO schema_version VALUES(3,'2026-11-22 18:46:11');
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
, counting TEXT NOT NULL DEFAULT 'last' CHECK (counting IN ('last', 'every')), extras TEXT NOT NULL DEFAULT '[]') STRICT;
INSERT INTO session VALUES(1,'20261122-184611-qejpcxan',1795373171763039,NULL,'["muster","-C","site.yaml","--system","old","-c","pod.check.yaml","-r"]','old','0','@HOST@','@FOLDER@','0.1.0',1,0,'@HOST@',1711,2909524,'@BOOT@','last','[]');
CREATE TABLE IF NOT EXISTS "case" (
    id        INTEGER PRIMARY KEY,
    session   INTEGER NOT NULL REFERENCES session (number),
    display   TEXT    NOT NULL,
    check_name TEXT   NOT NULL,
    hash      TEXT    NOT NULL,
    system    TEXT    NOT NULL,
    partition TEXT    NOT NULL,
    environ   TEXT    NOT NULL,
    about     TEXT    NOT NULL
, hidden TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "case" VALUES(1,1,'pod','pod','425c89ed','old','cluster','default','{"descr":"","tags":[],"maintainers":[],"file":"pod.check.yaml","parameters":[],"scheduler":"k8s","num_tasks":1}','');
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
    marks      TEXT, limits TEXT,
    UNIQUE (session, identifier)
) STRICT;
INSERT INTO job VALUES(1,'lxvsigst',1,1,'launched','@FOLDER@/stage/old/cluster/default/pod_425c89ed5bb78a76','{"identifier":"lxvsigst","session":"20261122-184611-qejpcxan","case":"pod @old:cluster+default","scheduler":"k8s","stage":"@FOLDER@/stage/old/cluster/default/pod_425c89ed5bb78a76","handle":{"place":{"context":"fake","namespace":"default"},"objects":[{"resource":{"group":"","version":"v1","kind":"Pod","plural":"pods"},"name":"rfm-hello-lxvsigst","manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"rfm-hello-lxvsigst","labels":{"more":"yes","team":"hpc","rfm":"lxvsigst","rfm-session":"20261122-184611-qejpcxan"},"annotations":{"rfm/case":"pod @old:cluster+default"},"namespace":"default"},"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox:1","command":["sh","-c","echo hello"],"env":[{"name":"OLD_SITE","value":"yes"}]}]}},"uid":null}],"workload":0,"expected_pods":1,"rules":{"succeeded":null,"failed":null,"pods":{"selector":null,"expect":null},"roles":[],"primary_containers":[],"stop":{"patch":{"spec":{"activeDeadlineSeconds":1}}},"name_max":null,"metadata_paths":[]},"keep_seconds":3600}}','{"sanity":[{"found":{"pattern":"hello","count":null}}],"perf_variables":[],"references":[],"strict":true,"require_reference":false,"facts":{},"xfail":null}','{"identifier":"lxvsigst","session":"20261122-184611-qejpcxan","case":"pod @old:cluster+default","scheduler":"k8s","stage":"@FOLDER@/stage/old/cluster/default/pod_425c89ed5bb78a76","handle":{"place":{"context":"fake","namespace":"default"},"objects":[{"resource":{"group":"","version":"v1","kind":"Pod","plural":"pods"},"name":"rfm-hello-lxvsigst","manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"rfm-hello-lxvsigst","labels":{"more":"yes","team":"hpc","rfm":"lxvsigst","rfm-session":"20261122-184611-qejpcxan"},"annotations":{"rfm/case":"pod @old:cluster+default"},"namespace":"default"},"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox:1","command":["sh","-c","echo hello"],"env":[{"name":"OLD_SITE","value":"yes"}]}]}},"uid":"00000000-0000-4000-8000-000000000002"}],"workload":0,"expected_pods":1,"rules":{"succeeded":null,"failed":null,"pods":{"selector":null,"expect":null},"roles":[],"primary_containers":[],"stop":{"patch":{"spec":{"activeDeadlineSeconds":1}}},"name_max":null,"metadata_paths":[]},"keep_seconds":3600}}',NULL,'{"pending":null,"run":{"secs":600,"nanos":0},"judge":{"secs":300,"nanos":0}}');
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
    detail     TEXT    NOT NULL, flaky INTEGER NOT NULL DEFAULT 0, quarantine TEXT, restored_from TEXT,
    UNIQUE ("case", number)
) STRICT;
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
CREATE INDEX case_session ON "case" (session);
CREATE INDEX job_open ON job (session) WHERE state <> 'cleaned';
CREATE UNIQUE INDEX case_history ON "case" (display, system, partition, environ, session, hidden);
COMMIT;
