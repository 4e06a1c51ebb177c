#!/usr/bin/env bash
# What do questions to a large database cost? 1,000,000 figures of 5,000 sessions over a year: two fortnights compared, and one variable
# over the year. Medians of 5 runs, each beside its limit.
#   bash tests/bench/results.sh [SESSIONS]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sessions=${1:-5000}

: >"$MUSTER_DB"
"$MUSTER_BENCH_BINARY" results migrate >/dev/null
python3 "$here/results.py" "$MUSTER_DB" "$sessions"
ask() { measure --repeat 5 --log "$scratch/$1.txt" -- "$MUSTER_BENCH_BINARY" results "${@:2}"; }

compared=$(ask compare compare 2026-10-28..2026-11-10 2026-11-11..2026-11-24)
grep -q '1 regressed' "$scratch/compare.txt" || { echo "the planted step was not found:"; tail -5 "$scratch/compare.txt"; exit 1; }
history=$(ask history history 'bench %n=3$' --var v1 --period 2025-11-25..2026-11-24)
grep -q "$sessions runs" "$scratch/history.txt" || { echo "not every run is in the history:"; tail -5 "$scratch/history.txt"; exit 1; }
listed=$(ask list list 2026-11-24 -N 5)

row() { printf '%-52s %10s %10s\n' "$@"; }
echo
row "muster results" "CPU s" "peak MB"
row "compare, two fortnights (<= 0.2 s, 50 MB)" "$(field cpu "$compared")" "$(field tree_mb "$compared")"
row "history, one variable, a year (<= 0.2 s, 50 MB)" "$(field cpu "$history")" "$(field tree_mb "$history")"
row "list, one night (no limit)" "$(field cpu "$listed")" "$(field tree_mb "$listed")"
