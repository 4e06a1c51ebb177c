#!/usr/bin/env python3
"""Runs a command and says what it cost: wall and processor seconds, memory, threads.

    measure.py [--repeat N] [--log FILE] [--expect 0,1] [--server PID] -- COMMAND...

Prints one line of `key=value`: the medians of N runs, and the largest memory and thread count of all of them.
Processor time is that of the command and of everything it started and waited for. Memory is the peak resident set of
the command itself (`rss_mb`: VmHWM, read every 20 ms), and the largest of it and its children as the kernel counts it
(`tree_mb`, never below the 15 MB that this script itself has: a child begins as its double).
With the first process of a PostgreSQL server: `cpu` has the time of all of its processes, too (`server_cpu`), and
`server_mb` is the peak resident set of the process that answered, with the shared memory that it has touched, and
`server_anon_mb` what it has for itself.
Needs nothing but Python 3 and Linux.
"""

import argparse
import os
import select
import statistics
import sys
import time


def status(pid):
    """VmHWM and RssAnon in KiB and the number of threads, while the process lives."""
    found = {}
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as lines:
            for line in lines:
                key, _, rest = line.partition(":")
                if key in ("VmHWM", "RssAnon", "Threads"):
                    found[key] = int(rest.split()[0])
    except (OSError, IndexError, ValueError):
        pass
    return found


def fields(pid):
    """Of /proc/PID/stat, from the state on; nothing if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()
    except OSError:
        return []


def children(pid):
    return [int(one) for one in os.listdir("/proc") if one.isdigit() and fields(one)[1:2] == [str(pid)]]


def server_cpu(pid):
    """Of a server and its children, also of those that have ended: the first process waits for them."""
    ticks = sum(map(int, fields(pid)[11:15]))
    ticks += sum(sum(map(int, fields(child)[11:13])) for child in children(pid))
    return ticks / os.sysconf("SC_CLK_TCK")


def settled(server, before):
    """What a server has used since: when the process that answered has ended."""
    while set(children(server)) - before[1]:
        time.sleep(0.02)
    return server_cpu(server) - before[0]


def run(argv, log, server):
    peaks = {}
    before = (server_cpu(server), set(children(server))) if server else None
    began = time.monotonic()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, log, 1),
        (os.POSIX_SPAWN_DUP2, log, 2),
    ]
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    except OSError as error:
        sys.exit(f"cannot run {argv[0]}: {error.strerror}")
    ended = os.pidfd_open(pid)
    while not select.select([ended], [], [], 0.02)[0]:
        for key, value in status(pid).items():
            peaks[key] = max(value, peaks.get(key, 0))
        for child in set(children(server)) - before[1] if server else ():
            known = status(child)
            peaks["server"] = max(known.get("VmHWM", 0), peaks.get("server", 0))
            peaks["server_anon"] = max(known.get("RssAnon", 0), peaks.get("server_anon", 0))
    wall = time.monotonic() - began
    os.close(ended)
    _, code, usage = os.wait4(pid, 0)
    of_server = settled(server, before) if server else 0
    return {
        "wall": wall,
        "cpu": usage.ru_utime + usage.ru_stime + of_server,
        "server_cpu": of_server,
        "server_mb": peaks.get("server", 0) / 1024,
        "server_anon_mb": peaks.get("server_anon", 0) / 1024,
        "tree_mb": usage.ru_maxrss / 1024,
        "rss_mb": peaks.get("VmHWM", 0) / 1024,
        "anon_mb": peaks.get("RssAnon", 0) / 1024,
        "threads": peaks.get("Threads", 0),
        "status": os.waitstatus_to_exitcode(code),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--log", default=os.devnull)
    parser.add_argument("--expect", default="0")
    parser.add_argument("--server", type=int)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not argv:
        parser.error("no command")
    log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    runs = [run(argv, log, options.server) for _ in range(options.repeat)]
    wrong = [one["status"] for one in runs if str(one["status"]) not in options.expect.split(",")]
    if wrong:
        with open(options.log, encoding="utf-8", errors="replace") as lines:
            print("".join(lines.readlines()[-20:]), file=sys.stderr)
        sys.exit(f"{argv[0]} ended with {wrong[0]}")
    median = {key: statistics.median(one[key] for one in runs) for key in ("wall", "cpu", "server_cpu")}
    most = {key: max(one[key] for one in runs) for key in ("tree_mb", "rss_mb", "anon_mb", "server_mb", "server_anon_mb", "threads")}
    of_server = " ".join(f" {key}={most[key]:.1f}" for key in ("server_mb", "server_anon_mb"))
    of_server = f" server_cpu={median['server_cpu']:.4f}{of_server}"
    print(
        f"wall={median['wall']:.4f} cpu={median['cpu']:.4f} tree_mb={most['tree_mb']:.1f} "
        f"rss_mb={most['rss_mb']:.1f} anon_mb={most['anon_mb']:.1f} threads={most['threads']}"
        + (of_server if options.server else "")
    )


main()
