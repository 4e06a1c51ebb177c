#!/usr/bin/env python3
"""Fills an empty results database: SESSIONS sessions over 365 nights, each of 40 cases with 5 figures.

    results.py DATABASE SESSIONS
"""
import json
import random
import sqlite3
import sys

CASES, VARIABLES, NIGHTS, FIRST = 40, 5, 365, 20417   # the last night is 2026-11-24
DAY = 86_400_000_000


def main(path, sessions):
    noise = random.Random(1)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    about = json.dumps({"descr": "", "tags": ["nightly"], "maintainers": [], "file": "checks.yaml", "parameters": [["n", "1"]],
                        "scheduler": "k8s", "num_tasks": 1})
    detail = json.dumps({"warnings": [], "nodes": ["n1"], "exits": [], "log_tail": None, "look": [], "delete": [], "leftovers": []})
    names = [f"bench %n={case}" for case in range(CASES)]
    db.executemany("INSERT INTO subject VALUES (?, 's', 'p', 'e', ?)", [(case + 1, name) for case, name in enumerate(names)])
    db.executemany("INSERT INTO metric VALUES (?, ?, ?, '', 'GB/s', 'higher')",
                   [(metric + 1, metric // VARIABLES + 1, f"v{metric % VARIABLES}") for metric in range(CASES * VARIABLES)])
    db.execute("INSERT INTO basis VALUES (1, 'GB/s', 'c', '')")
    db.executemany("INSERT INTO night VALUES ('s', ?, ?, ?, 'UTC', 'ended')",
                   [(night, night * DAY, night * DAY + DAY) for night in range(FIRST, FIRST + NIGHTS)])
    for number in range(sessions):
        night = FIRST + number * NIGHTS // sessions
        started = night * DAY + 72_000_000_000 + number * 1000
        db.execute("""INSERT INTO session (number, id, started, ended, command, system, user_name, host, workdir, version, num_cases,
            interrupted, owner_host, owner_pid, owner_start_time, owner_boot_id, night)
            VALUES (?, ?, ?, ?, '[]', 's', 'u', 'h', '/', '1', ?, 0, 'h', 1, 1, 'b', ?)""",
                   (number + 1, f"{number:08d}-000000-abcdefgh", started, started + 1, CASES, night))
        first = number * CASES
        db.executemany("INSERT INTO \"case\" (id, session, display, check_name, hash, system, partition, environ, about) "
                       "VALUES (?, ?, ?, 'bench', '', 's', 'p', 'e', ?)",
                       [(first + case + 1, number + 1, name, about) for case, name in enumerate(names)])
        db.executemany("INSERT INTO attempt (id, \"case\", number, outcome, phase, begun, finished, detail) "
                       "VALUES (?, ?, 1, 'pass', 'performance', ?, ?, ?)",
                       [(first + case + 1, first + case + 1, started, started + case, detail) for case in range(CASES)])
        values = [100 * (1 + noise.gauss(0, 0.01)) * (0.95 if metric == 7 and night >= FIRST + NIGHTS - 14 else 1)
                  for metric in range(CASES * VARIABLES)]
        db.executemany("INSERT INTO measurement (attempt, position, variable, value, unit, reference, lower, verdict, direction) "
                       "VALUES (?, ?, ?, ?, 'GB/s', 100, 90, 'pass', 'higher')",
                       [(first + metric // VARIABLES + 1, metric % VARIABLES, f"v{metric % VARIABLES}", value)
                        for metric, value in enumerate(values)])
        db.executemany("INSERT INTO run_figure VALUES (?, ?, ?, 0, ?, 1)",
                       [(metric + 1, night, first + metric // VARIABLES + 1, value) for metric, value in enumerate(values)])
    db.commit()
    print(db.execute("SELECT count(*) FROM run_figure").fetchone()[0], "figures in", sessions, "sessions")


main(sys.argv[1], int(sys.argv[2]))
