#!/usr/bin/env python3
"""The rounds of crash.sh: kill, look into the database, sweep, look for processes.

    crash.py ROUNDS FOLDER MUSTER ARGUMENTS...
"""

import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time

FINISHED = re.compile(r"^\[ +(?:OK|FAIL) +\] (?:\(\d+/\d+\) )?(\S.*?) /[0-9a-f]{8} @", re.MULTILINE)


def start(argv, folder):
    log = open(os.path.join(folder, "run.txt"), "wb")
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def stored(database):
    """The newest session, its finished cases, and what SQLite says of the file."""
    with sqlite3.connect(database) as connection:
        (number, name) = connection.execute("SELECT number, id FROM session ORDER BY number DESC LIMIT 1").fetchone()
        cases = 'SELECT display FROM "case" JOIN attempt ON attempt."case" = "case".id WHERE session = ?'
        displays = {row[0] for row in connection.execute(cases, (number,))}
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
    return name, displays, sound


def processes(session):
    """Pids whose environment carries the mark of the session."""
    mark, found = f"RFM_SESSION={session}".encode(), []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if mark in environ.read().split(b"\0"):
                        found.append(int(entry))
            except OSError:
                pass
    return found


def killed_session(argv, folder, whole):
    """Starts a session and kills it while it runs: when, and the names of the cases it had reported as finished."""
    while True:
        moment = random.uniform(0.02, whole * 0.98)
        process = start(argv, folder)
        time.sleep(moment)
        if process.poll() is not None:
            continue
        process.send_signal(signal.SIGKILL)
        process.wait()
        with open(os.path.join(folder, "run.txt"), encoding="utf-8", errors="replace") as log:
            return moment, set(FINISHED.findall(log.read()))


def main():
    rounds, folder, muster = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    database = os.environ["MUSTER_DB"]
    argv = [*muster, "-c", os.path.join(folder, "check.yaml"), "-r"]
    began = time.monotonic()
    if start(argv, folder).wait() != 0:
        sys.exit(f"the session fails without being killed; see {folder}/run.txt")
    whole = time.monotonic() - began
    unkilled = processes(stored(database)[0])
    lost = left = unsound = unnoticed = 0
    print(f"\n{rounds} sessions of {whole:.1f} s, each killed at a random moment")
    print(f"{'round':>5} {'after s':>8} {'reported':>9} {'stored':>7} {'lost':>5} {'running':>8} {'swept to':>9}")
    for number in range(1, rounds + 1):
        moment, reported = killed_session(argv, folder, whole)
        session, kept, sound = stored(database)
        missing = reported - kept
        alive = processes(session)
        listing = subprocess.run([*muster, "results", "list"], capture_output=True, text=True, check=False).stdout
        unnoticed += "interrupted" not in listing
        subprocess.run([*muster, "sweep"], stdout=subprocess.DEVNULL, check=False)
        after = processes(session)
        lost, left, unsound = lost + len(missing), left + len(after), unsound + (sound != "ok")
        print(f"{number:>5} {moment:>8.2f} {len(reported):>9} {len(kept):>7} {len(missing):>5} {len(alive):>8} {len(after):>9}")
    print(f"\nfinished cases lost: {lost} (must be 0)")
    print(f"processes left after `muster sweep`: {left} (must be 0)")
    print(f"unsound databases: {unsound} (must be 0); sessions not shown as interrupted: {unnoticed} (must be 0)")
    print(f"daemons left by the session that nobody killed: {len(unkilled)} (must be 0)")
    for pid in unkilled:
        os.kill(pid, signal.SIGKILL)
    sys.exit(1 if lost or left or unsound or unnoticed or unkilled else 0)


main()
