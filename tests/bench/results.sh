#!/usr/bin/env bash
# What do questions to a large database cost? 1,000,000 figures of 5,000 sessions over a year: two fortnights compared, and one variable
# over the year. Medians of 5 runs, each beside its limit. Then what it costs to write a case. Then a database of ReFrame with 50,000
# cases is imported, its counts and values are compared by query, and ReFrame answers the same questions to it.
#   bash tests/bench/results.sh [SESSIONS] [SESSIONS OF REFRAME, 100 cases each]
#   bash tests/bench/results.sh postgres [SESSIONS]       questions and writing alone, on a PostgreSQL server: client and server together
# A binary that you have, also a debug build: MUSTER_BENCH_BINARY=target/debug/muster; REPEAT=1 for a first look.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
of_server=()
if [ "${1:-}" = postgres ]; then
  shift
  # shellcheck source=tests/bench/postgres.sh
  source "$here/postgres.sh"
fi
sessions=${1:-5000}
of_reframe=${2:-500}
repeat=${REPEAT:-5}
file=$MUSTER_DB

: >"$file"
"$MUSTER_BENCH_BINARY" results migrate >/dev/null
python3 "$here/results.py" "$file" "$sessions"
if declare -F postgres_start >/dev/null; then
  postgres_start
  "$MUSTER_BENCH_BINARY" results migrate >/dev/null
  postgres_copy "$file"
  of_server=(--server "$server")
fi
ask() { measure "${of_server[@]}" --repeat "$repeat" --log "$scratch/$1.txt" -- "$MUSTER_BENCH_BINARY" results "${@:2}"; }

compared=$(ask compare compare 2026-10-28..2026-11-10 2026-11-11..2026-11-24)
grep -q '1 regressed' "$scratch/compare.txt" || { echo "the planted step was not found:"; tail -5 "$scratch/compare.txt"; exit 1; }
history=$(ask history history 'bench %n=3$' --var v1 --period 2025-11-25..2026-11-24)
grep -q "$sessions runs" "$scratch/history.txt" || { echo "not every run is in the history:"; tail -5 "$scratch/history.txt"; exit 1; }
listed=$(ask list list 2026-11-24 -N 5)

row() { printf '%-52s %10s %10s %10s %10s\n' "$@"; }
cost() { row "$1" "$(field cpu "$2")" "$(field tree_mb "$2")" "$(field server_mb "$2")" "$(field server_anon_mb "$2")"; }
echo
row "muster results" "CPU s" "peak MB" "server MB" "its own"
cost "compare, two fortnights (<= 0.2 s, 50 MB)" "$compared"
cost "history, one variable, a year (<= 0.2 s, 50 MB)" "$history"
cost "list, one night (no limit)" "$listed"

# To write sessions of 1,000 cases: what an import costs beyond one that finds all of them stored. Both read the file twice.
read -r cases _ < <(python3 "$here/reframe_results.py" "$scratch/written.db" 50 1000)
if [ ${#of_server[@]} = 0 ]; then
  export MUSTER_DB=$scratch/cases.db
else
  "${psql[@]}" -d muster -c 'CREATE SCHEMA written'
  MUSTER_DB="$MUSTER_DB&options=-csearch_path%3Dwritten"
fi
first=$(repeat=1 ask first import "$scratch/written.db")
again=$(repeat=1 ask again import "$scratch/written.db")
grep -q "imported 50 session(s)" "$scratch/first.txt" || { echo "not every session was written:"; cat "$scratch/first.txt"; exit 1; }
each=$(compute "($(field cpu "$first") - $(field cpu "$again")) * 1000 / $cases" 3)
row "a case is written: CPU ms (SQLite: <= 0.3 ms)" "$each" "$(field tree_mb "$first")" "$(field server_mb "$first")" "$(field server_anon_mb "$first")"
[ ${#of_server[@]} = 0 ] || exit 0

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
cost "import of $cases cases of ReFrame" "$imported"
cost "the same again, all known" "$again"
cost "--performance-compare, all $cases cases" "$ours"
cost "--list-stored-sessions (<= 50 MB)" "$our_list"
if reframe_ready; then
  theirs=("${reframe[0]}" "RFM_ENABLE_RESULTS_STORAGE=1" "RFM_SQLITE_DB_FILE=$scratch/reframe.db" "${reframe[@]:1}")
  compared=$(measure --repeat "$repeat" --log "$scratch/theirs.txt" -- "${theirs[@]}" --performance-compare "$spec")
  listed=$(measure --repeat "$repeat" --log "$scratch/their_list.txt" -- "${theirs[@]}" --list-stored-sessions=20260901:20261231)
  cost "ReFrame $REFRAME_VERSION: --performance-compare" "$compared"
  cost "ReFrame $REFRAME_VERSION: --list-stored-sessions" "$listed"
fi
