#!/usr/bin/env bash
# What do questions to a large database cost? 1,000,000 figures of 5,000 sessions over a year: two fortnights compared, and one variable
# over the year. Medians of 5 runs, each beside its limit. Then a database of ReFrame with 50,000 cases is imported, its counts and values
# are compared by query, and ReFrame answers the same questions to it.
#   bash tests/bench/results.sh [SESSIONS] [SESSIONS OF REFRAME, 100 cases each]
# A binary that you have, also a debug build: MUSTER_BENCH_BINARY=target/debug/muster; REPEAT=1 for a first look.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
sessions=${1:-5000}
of_reframe=${2:-500}
repeat=${REPEAT:-5}

: >"$MUSTER_DB"
"$MUSTER_BENCH_BINARY" results migrate >/dev/null
python3 "$here/results.py" "$MUSTER_DB" "$sessions"
ask() { measure --repeat "$repeat" --log "$scratch/$1.txt" -- "$MUSTER_BENCH_BINARY" results "${@:2}"; }

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

# ReFrame's database: what it has, as it was written.
read -r cases total < <(python3 "$here/reframe_results.py" "$scratch/reframe.db" "$of_reframe")
export MUSTER_DB=$scratch/imported.db
imported=$(measure --log "$scratch/import.txt" -- "$MUSTER_BENCH_BINARY" results import "$scratch/reframe.db")
cat "$scratch/import.txt"
[ "$(sqlite_count 'SELECT count(*) FROM attempt')" = "$cases" ] || { echo "not every case was imported"; exit 1; }
[ "$(sqlite_count "SELECT printf('%.6f', sum(value)) FROM measurement WHERE variable = 'copy'")" = "$total" ] ||
  { echo "other values were imported"; exit 1; }
again=$(measure --log "$scratch/again.txt" -- "$MUSTER_BENCH_BINARY" results import "$scratch/reframe.db")
grep -q "imported 0 session(s)" "$scratch/again.txt" || { echo "a second import stored something:"; cat "$scratch/again.txt"; exit 1; }
spec=20260901:20261231/20260901:20261231/median:/
ours=$(measure --repeat "$repeat" --log "$scratch/ours.txt" -- "$MUSTER_BENCH_BINARY" --performance-compare "$spec")
our_list=$(measure --repeat "$repeat" --log "$scratch/our_list.txt" -- "$MUSTER_BENCH_BINARY" --list-stored-sessions 20260901:20261231)
row "import of $cases cases of ReFrame" "$(field cpu "$imported")" "$(field tree_mb "$imported")"
row "the same again, all known" "$(field cpu "$again")" "$(field tree_mb "$again")"
row "--performance-compare, all $cases cases" "$(field cpu "$ours")" "$(field tree_mb "$ours")"
row "--list-stored-sessions" "$(field cpu "$our_list")" "$(field tree_mb "$our_list")"
if reframe_ready; then
  theirs=("${reframe[0]}" "RFM_ENABLE_RESULTS_STORAGE=1" "RFM_SQLITE_DB_FILE=$scratch/reframe.db" "${reframe[@]:1}")
  compared=$(measure --repeat "$repeat" --log "$scratch/theirs.txt" -- "${theirs[@]}" --performance-compare "$spec")
  listed=$(measure --repeat "$repeat" --log "$scratch/their_list.txt" -- "${theirs[@]}" --list-stored-sessions=20260901:20261231)
  row "ReFrame $REFRAME_VERSION: --performance-compare" "$(field cpu "$compared")" "$(field tree_mb "$compared")"
  row "ReFrame $REFRAME_VERSION: --list-stored-sessions" "$(field cpu "$listed")" "$(field tree_mb "$listed")"
fi
