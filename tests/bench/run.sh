#!/usr/bin/env bash
# What does the harness itself cost? 500 trivial local cases, 32 at once, against the same job scripts started by a shell
# loop; ReFrame beside it, with fewer cases.
#   bash tests/bench/run.sh [COUNT] [REPEAT]
# Runs in memory (/dev/shm) unless TMPDIR says otherwise: for five seconds after thousands of files were removed, ext4 takes
# milliseconds to create one, and the figure would be the file system's. For the same reason nothing is deleted in between.
[ -n "${TMPDIR:-}" ] || [ ! -d /dev/shm ] || export TMPDIR=/dev/shm
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-500} repeat=${2:-5} reframe_count=100

site 32
local_check "$scratch/check.yaml" "$count" true
for n in $(seq "$repeat"); do
  measure --log "$scratch/run.txt" -- "${muster[@]}" --prefix "$scratch/$n" -c "$scratch/check.yaml" -r >>"$scratch/runs"
  # Passed cases keep their script below output/: the same scripts again, without Muster.
  scripts=$(find "$scratch/$n/output" -name rfm_job.sh | wc -l)
  [ "$scripts" -eq "$count" ] || { echo "$scripts scripts kept of $count cases"; exit 1; }
  measure -- sh "$here/bare.sh" "$scratch/$n/output" rfm_job.sh >>"$scratch/bares"
done
stored=$(sqlite_count "SELECT count(*) FROM attempt WHERE outcome = 'pass'")
[ "$stored" -eq "$((count * repeat))" ] || { echo "$stored results stored of $((count * repeat))"; exit 1; }
run=$(median cpu "$scratch/runs") bare=$(median cpu "$scratch/bares")

row() { printf '%-46s %10s %10s %14s\n' "$@"; }
per_case() { compute "$1 / $2 * 1000" 2; }
echo
row "medians of $repeat runs, on $(stat -f -c %T "$scratch")" "wall s" "CPU s" "CPU ms a case"
row "$count job scripts from a shell loop" "$(field wall "$bare")" "$(field cpu "$bare")" "$(per_case "$(field cpu "$bare")" "$count")"
row "$count cases, muster -r, 32 at once" "$(field wall "$run")" "$(field cpu "$run")" "$(per_case "$(field cpu "$run")" "$count")"
row "muster's own share (<= 1 ms a case)" "" "" "$(per_case "($(field cpu "$run") - $(field cpu "$bare"))" "$count")"
row "peak memory and threads of muster" "$(field rss_mb "$run") MB" "$(field threads "$run")" ""
if reframe_ready; then
  reframe_check "$scratch/check.py" "$reframe_count"
  other=$(measure --log "$scratch/reframe.txt" -- "${reframe[@]}" -c "$scratch/check.py" -r)
  row "$reframe_count cases, ReFrame $REFRAME_VERSION, 32 at once" "$(field wall "$other")" "$(field cpu "$other")" "$(per_case "$(field cpu "$other")" "$reframe_count")"
  row "ReFrame's own share" "" "" "$(compute "($(field cpu "$other") / $reframe_count - $(field cpu "$bare") / $count) * 1000" 2)"
fi
