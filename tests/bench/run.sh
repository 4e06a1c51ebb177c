#!/usr/bin/env bash
# What does the harness itself cost? 500 trivial local cases, 32 at once, against the same job scripts started by a shell
# loop; ReFrame beside it, with fewer cases. Once in memory (/dev/shm) and once on a disk (/var/tmp), or in TMPDIR alone.
#   bash tests/bench/run.sh [COUNT] [REPEAT]
# Nothing is deleted in between, and runs of the bench in a row need a pause: see `bench_places`.
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-500} repeat=${2:-5} reframe_count=100

# cpu FILE: the median and the least of the processor times that measure printed.
cpu() { printf '%s %s' "$(field cpu "$(median cpu "$1")")" "$(field cpu "$(least cpu "$1")")"; }
row() { printf '%-46s %10s %14s %12s\n' "$@"; }
per_case() { compute "$1 / $2 * 1000" 2; }
# cost NAME FILE COUNT: a row of wall time and processor time, median and least.
cost() {
  read -r middle best <<<"$(cpu "$2")"
  row "$1" "$(field wall "$(median cpu "$2")")" "$(per_case "$middle" "$3")" "$(per_case "$best" "$3")"
}

# rounds FOLDER: the harness and the loop in turn, so that a busy moment meets both.
rounds() {
  export MUSTER_DB=$1/results.db
  for n in $(seq "$repeat"); do
    measure --log "$1/run.txt" -- "${muster[@]}" --prefix "$1/$n" -c "$scratch/check.yaml" -r >>"$1/runs"
    # Passed cases keep their script below output/: the same scripts again, without Muster, where nothing else is.
    mkdir "$1/bare.$n"
    (cd "$1/$n/output" && find . -name rfm_job.sh -exec cp --parents -t "$1/bare.$n" {} +)
    scripts=$(find "$1/bare.$n" -name rfm_job.sh | wc -l)
    [ "$scripts" -eq "$count" ] || { echo "$scripts scripts kept of $count cases"; exit 1; }
    measure -- sh "$here/bare.sh" "$1/bare.$n" rfm_job.sh >>"$1/bares"
  done
  stored=$(sqlite_count "SELECT count(*) FROM attempt WHERE outcome = 'pass'")
  [ "$stored" -eq "$((count * repeat))" ] || { echo "$stored results stored of $((count * repeat))"; exit 1; }
}

# figures FOLDER
figures() {
  echo
  row "$repeat runs each, on $(stat -f -c %T "$1")" "wall s" "CPU ms a case" "the least"
  cost "$count job scripts from a shell loop" "$1/bares" "$count"
  cost "$count cases, muster -r, 32 at once" "$1/runs" "$count"
  read -r run run_least <<<"$(cpu "$1/runs")"
  read -r bare bare_least <<<"$(cpu "$1/bares")"
  row "muster's own share (<= 1 ms a case)" "" "$(per_case "($run - $bare)" "$count")" "$(per_case "($run_least - $bare_least)" "$count")"
  last=$(median cpu "$1/runs")
  row "peak memory and threads of muster" "" "$(field rss_mb "$last") MB" "$(field threads "$last")"
}

site 32
local_check "$scratch/check.yaml" "$count" true
bench_places
for place in "${places[@]}"; do
  rounds "$place"
  figures "$place"
done
if reframe_ready; then
  reframe_check "$scratch/check.py" "$reframe_count"
  measure --log "$scratch/reframe.txt" -- "${reframe[@]}" -c "$scratch/check.py" -r >"$scratch/reframes"
  cost "$reframe_count cases, ReFrame $REFRAME_VERSION, 32 at once" "$scratch/reframes" "$reframe_count"
  read -r other _ <<<"$(cpu "$scratch/reframes")"
  row "ReFrame's own share" "" "$(compute "($other / $reframe_count - $bare / $count) * 1000" 2)" ""
fi
