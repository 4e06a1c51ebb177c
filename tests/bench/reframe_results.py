#!/usr/bin/env python3
"""Writes a results database as ReFrame 4.10 does: SESSIONS sessions over as many hours, each of CASES cases (100) with 2 figures.

    reframe_results.py DATABASE SESSIONS [CASES]

Prints what it has written: cases, and the sum of all values of `copy`, rounded to 6 digits.
"""
import datetime
import json
import random
import sqlite3
import sys

FIRST = 1_790_000_000
CELL = {
    "build_jobid": None, "build_stderr": None, "build_stdout": None, "dependencies_actual": [], "dependencies_conceptual": [],
    "environ": "default", "fail_phase": None, "fail_reason": None, "filename": "/srv/checks/stream.py", "fixture": False,
    "job_stderr": "rfm_job.err", "job_stdout": "rfm_job.out", "partition": "local", "result": "pass", "run_index": 0,
    "scheduler": "local", "time_compile": 0.1, "time_performance": 0.02, "time_run": 1.5, "time_sanity": 0.03,
    "time_setup": 0.1, "time_total": 2.9, "outputdir": "/srv/out/output/bench/local/default/stream", "job_exitcode": 0,
    "job_nodelist": ["node1"], "jobid": "1", "system": "bench", "build_locally": True, "build_time_limit": None,
    "descr": "A stand-in for STREAM", "env_vars": {}, "exclusive_access": False, "executable": "echo", "executable_opts": [],
    "extra_resources": {}, "keep_files": [], "local": False, "maintainers": ["ada"], "max_pending_time": None, "modules": [],
    "num_cpus_per_task": None, "num_gpus_per_node": None, "num_tasks": 1, "num_tasks_per_core": None,
    "num_tasks_per_node": None, "num_tasks_per_socket": None, "postbuild_cmds": [], "postrun_cmds": [], "prebuild_cmds": [],
    "prefix": "/srv/checks", "prerun_cmds": [], "readonly_files": [], "sourcepath": "", "sourcesdir": None,
    "stagedir": "/srv/out/stage/bench/local/default/stream", "strict_check": True, "tags": ["memory", "nightly"],
    "time_limit": None, "use_multithreading": None, "valid_prog_environs": ["*"], "valid_systems": ["*"], "variables": {},
}


def iso(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).isoformat()


def case(uuid, started, number, noise):
    ended = started + number * 3
    values = {
        "bench:local:copy": [round(100 * (1 + noise.gauss(0, 0.01)), 6), 100, -0.1, 0.1, "GB/s", "pass"],
        "bench:local:latency": [round(5 * (1 + noise.gauss(0, 0.02)), 6), 5, None, 0.2, "us", "pass"],
    }
    name = f"stream %n={number}"
    return CELL | {
        "session_uuid": uuid, "uuid": f"{uuid}:0:{number}", "name": name, "display_name": name, "hashcode": f"{number:08x}",
        "short_name": f"stream_{number:08x}", "unique_name": f"stream_{number}", "n": number, "perfvalues": values,
        "job_completion_time": iso(ended), "job_completion_time_unix": float(ended), "job_submit_time": float(ended - 2),
    }


def main(path, sessions, of_session=100):
    noise, total = random.Random(1), 0.0
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    db.executescript("""
        CREATE TABLE sessions(uuid TEXT PRIMARY KEY, session_start_unix REAL, session_end_unix REAL, json_blob TEXT, report_file TEXT);
        CREATE TABLE testcases(name TEXT,system TEXT, partition TEXT, environ TEXT, job_completion_time_unix REAL, session_uuid TEXT,
            uuid TEXT, FOREIGN KEY(session_uuid) REFERENCES sessions(uuid) ON DELETE CASCADE);
        CREATE TABLE metadata(schema_version TEXT);
        CREATE INDEX index_testcases_time on testcases(job_completion_time_unix);
        CREATE INDEX index_sessions_time on sessions(session_start_unix);
        INSERT INTO metadata VALUES ('1.0');
    """)
    for number in range(sessions):
        uuid, started = f"{number:08x}-0000-4000-8000-000000000000", FIRST + number * 3600
        cases = [case(uuid, started, n, noise) for n in range(of_session)]
        total += sum(one["perfvalues"]["bench:local:copy"][0] for one in cases)
        info = {
            "data_version": "4.2", "hostname": "login1", "uuid": uuid, "time_start": iso(started), "time_start_unix": float(started),
            "time_end": iso(started + 300), "time_end_unix": float(started + 300), "time_elapsed": 300.0,
            "cmdline": "reframe -c /srv/checks -r", "config_files": ["<builtin>"], "log_files": [], "prefix_output": "/srv/out/output",
            "prefix_stage": "/srv/out/stage", "user": "ada", "version": "4.10.4", "workdir": "/srv/checks", "num_cases": of_session,
            "num_failures": 0, "num_aborted": 0, "num_skipped": 0,
        }
        run = {"num_cases": of_session, "num_failures": 0, "num_aborted": 0, "num_skipped": 0, "run_index": 0, "testcases": cases}
        blob = json.dumps({"session_info": info, "runs": [run], "restored_cases": []})
        db.execute("INSERT INTO sessions VALUES (?, ?, ?, ?, '')", (uuid, float(started), float(started + 300), blob))
        db.executemany("INSERT INTO testcases VALUES (?, 'bench', 'local', 'default', ?, ?, ?)",
                       [(one["name"], one["job_completion_time_unix"], uuid, one["uuid"]) for one in cases])
    db.commit()
    print(sessions * of_session, f"{total:.6f}")


main(sys.argv[1], *map(int, sys.argv[2:]))
