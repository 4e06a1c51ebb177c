#!/usr/bin/env python3
"""Runs a session and says, each time a tenth of its attempts have ended, what it holds and has used.

    long.py ATTEMPTS -- COMMAND...

Counts the lines of results on stdout. Memory is the resident set of the command itself (VmRSS), processor time that of the command
and of its children that live (the judges). The last lines compare the last tenth with the second.
Needs nothing but Python 3 and Linux.
"""

import os
import subprocess
import sys

TICK = os.sysconf("SC_CLK_TCK")


def processes(pid):
    """The process and its children, each as the fields of its stat after the name."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as text:
                fields = text.read().rpartition(")")[2].split()
        except OSError:
            continue
        if int(entry) == pid or int(fields[1]) == pid:
            yield fields


def seconds(pid):
    return sum(int(fields[11]) + int(fields[12]) for fields in processes(pid)) / TICK


def resident_mb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def main():
    attempts, command = int(sys.argv[1]), sys.argv[3:]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    print(f"{'attempts':>10} {'resident MB':>12} {'CPU s':>9} {'ms an attempt':>14}", flush=True)
    ended, rows, before = 0, [], 0.0
    for line in child.stdout:
        if not line.startswith("[       OK ] ("):
            continue
        ended += 1
        if ended % (attempts // 10) == 0 and ended < attempts:
            cpu, memory = seconds(child.pid), resident_mb(child.pid)
            each = (cpu - before) * 1000 / (attempts // 10)
            rows.append((memory, each))
            print(f"{ended:>10} {memory:>12.1f} {cpu:>9.1f} {each:>14.3f}", flush=True)
            before = cpu
    code = child.wait()
    print(f"{ended} attempts ended; exit code {code}")
    (first, _), (last, late) = rows[0], rows[-1]
    early = rows[1][1]
    print(f"memory grew by {last - first:.1f} MB (<= 10 MB); an attempt costs {(late / early - 1) * 100:+.1f} % (<= 5 %)")
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
