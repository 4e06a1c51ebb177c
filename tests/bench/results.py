#!/usr/bin/env python3
"""Fills an empty results database: SESSIONS sessions over NIGHTS nights, each of CASES cases with 5 figures.

    results.py DATABASE SESSIONS [CASES [NIGHTS]]     40 cases and 365 nights by default
"""
import json
import random
import sqlite3
import sys

VARIABLES, LAST = 5, 20781   # 2026-11-24
DAY = 86_400_000_000


def main(path, sessions, cases=40, nights=365):
    first_night = LAST - nights + 1
    noise = random.Random(1)
    db = sqlite3.connect(path)
    db.execute("PRAGMA synchronous = OFF")
    about = json.dumps({"descr": "", "tags": ["nightly"], "maintainers": [], "file": "checks.yaml", "parameters": [["n", "1"]],
                        "scheduler": "k8s", "num_tasks": 1})
    detail = json.dumps({"warnings": [], "nodes": ["n1"], "exits": [], "log_tail": None, "look": [], "delete": [], "leftovers": []})
    names = [f"bench %n={case}" for case in range(cases)]
    db.executemany("INSERT INTO subject VALUES (?, 's', 'p', 'e', ?)", [(case + 1, name) for case, name in enumerate(names)])
    db.executemany("INSERT INTO metric (id, subject, variable, key, unit, direction) VALUES (?, ?, ?, '', 'GB/s', 'higher')",
                   [(metric + 1, metric // VARIABLES + 1, f"v{metric % VARIABLES}") for metric in range(cases * VARIABLES)])
    db.execute("INSERT INTO basis VALUES (1, 'GB/s', 'c', '')")
    db.executemany("INSERT INTO night VALUES ('s', ?, ?, ?, 'UTC', 'ended')",
                   [(night, night * DAY, night * DAY + DAY) for night in range(first_night, LAST + 1)])
    for number in range(sessions):
        night = first_night + number * nights // sessions
        started = night * DAY + 72_000_000_000 + number * 1000
        db.execute("""INSERT INTO session (number, id, started, ended, command, system, user_name, host, workdir, version, num_cases,
            interrupted, owner_host, owner_pid, owner_start_time, owner_boot_id, night)
            VALUES (?, ?, ?, ?, '[]', 's', 'u', 'h', '/', '1', ?, 0, 'h', 1, 1, 'b', ?)""",
                   (number + 1, f"{number:08d}-000000-abcdefgh", started, started + 1, cases, night))
        first = number * cases
        db.executemany("INSERT INTO \"case\" (id, session, display, check_name, hash, system, partition, environ, about) "
                       "VALUES (?, ?, ?, 'bench', '', 's', 'p', 'e', ?)",
                       [(first + case + 1, number + 1, name, about) for case, name in enumerate(names)])
        db.executemany("INSERT INTO attempt (id, \"case\", number, outcome, phase, begun, finished, detail) "
                       "VALUES (?, ?, 1, 'pass', 'performance', ?, ?, ?)",
                       [(first + case + 1, first + case + 1, started, started + case, detail) for case in range(cases)])
        values = [100 * (1 + noise.gauss(0, 0.01)) * (0.95 if metric == 7 and night > LAST - 14 else 1)
                  for metric in range(cases * VARIABLES)]
        db.executemany("INSERT INTO measurement (attempt, position, variable, value, unit, reference, lower, verdict, direction) "
                       "VALUES (?, ?, ?, ?, 'GB/s', 100, 90, 'pass', 'higher')",
                       [(first + metric // VARIABLES + 1, metric % VARIABLES, f"v{metric % VARIABLES}", value)
                        for metric, value in enumerate(values)])
        db.executemany("INSERT INTO run_figure (metric, night, \"case\", repeat, value, basis, session, finished, reference, lower) "
                       "VALUES (?, ?, ?, 0, ?, 1, ?, ?, 100, 90)",
                       [(metric + 1, night, first + metric // VARIABLES + 1, value, number + 1, started + metric // VARIABLES) for metric, value in enumerate(values)])
    db.commit()
    print(db.execute("SELECT count(*) FROM run_figure").fetchone()[0], "figures in", sessions, "sessions")


main(sys.argv[1], *map(int, sys.argv[2:]))
