#!/usr/bin/env bash
# What does the harness itself cost? 500 trivial local cases, 32 at once, against the same job scripts started by a shell
# loop; ReFrame beside it, with fewer cases.
#   bash tests/bench/run.sh [COUNT] [REPEAT]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-500} repeat=${2:-5} reframe_count=100

site 32
local_check "$scratch/check.yaml" "$count" true
run=$(measure --repeat "$repeat" --log "$scratch/run.txt" -- "${muster[@]}" -c "$scratch/check.yaml" -r)
stored=$("$MUSTER_BENCH_BINARY" results list --nocolor | wc -l)
[ "$stored" -ge "$repeat" ] || { echo "only $stored lines in the list of stored sessions"; exit 1; }

# Passed cases keep their script below output/: the last run's, once each.
scripts=$(find "$scratch/output" -name rfm_job.sh | wc -l)
[ "$scripts" -ge "$count" ] || { echo "$scripts scripts kept of $count cases"; exit 1; }
bare=$(measure --repeat "$repeat" -- sh "$here/bare.sh" "$scratch/output" rfm_job.sh)

row() { printf '%-44s %10s %10s %14s\n' "$@"; }
# The floor per script, for however many were kept.
floor=$(compute "$(field cpu "$bare") / $scripts" 6)
own=$(compute "($(field cpu "$run") / $count - $floor) * 1000" 2)
echo
row "medians of $repeat runs" "wall s" "CPU s" "CPU ms a case"
row "$scripts job scripts from a shell loop" "$(field wall "$bare")" "$(field cpu "$bare")" "$(compute "$floor * 1000" 2)"
row "$count cases, muster -r, 32 at once" "$(field wall "$run")" "$(field cpu "$run")" "$(compute "$(field cpu "$run") / $count * 1000" 2)"
row "muster's own share (<= 1 ms a case)" "" "" "$own"
row "peak memory and threads of muster" "$(field rss_mb "$run") MB" "$(field threads "$run")" ""
if reframe_ready; then
  reframe_check "$scratch/check.py" "$reframe_count"
  other=$(measure --log "$scratch/reframe.txt" -- "${reframe[@]}" -c "$scratch/check.py" -r)
  theirs=$(compute "($(field cpu "$other") / $reframe_count - $floor) * 1000" 2)
  row "$reframe_count cases, ReFrame $REFRAME_VERSION, 32 at once" "$(field wall "$other")" "$(field cpu "$other")" "$(compute "$(field cpu "$other") / $reframe_count * 1000" 2)"
  row "ReFrame's own share" "" "" "$theirs"
fi
