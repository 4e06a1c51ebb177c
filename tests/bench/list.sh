#!/usr/bin/env bash
# What does listing cost? One check with 10,000 values, and one check alone; ReFrame beside it.
#   bash tests/bench/list.sh [COUNT]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-10000}

site 4
local_check "$scratch/many.yaml" "$count" true
local_check "$scratch/one.yaml" 1 true

many=$(measure --log "$scratch/many.txt" -- "${muster[@]}" -c "$scratch/many.yaml" -l)
listed=$(grep -c '^- ' "$scratch/many.txt" || true)
[ "$listed" -eq "$count" ] || { echo "listed $listed of $count:"; tail -3 "$scratch/many.txt"; exit 1; }
# Once to have the program in memory, then twenty times.
measure -- "${muster[@]}" -c "$scratch/one.yaml" -l >/dev/null
one=$(measure --repeat 20 -- "${muster[@]}" -c "$scratch/one.yaml" -l)

row() { printf '%-42s %10s %10s %10s\n' "$@"; }
echo
row "muster -c FILE -l" "CPU s" "peak MB" "wall ms"
row "$count values, muster (<= 0.25 s, 60 MB)" "$(field cpu "$many")" "$(field tree_mb "$many")" "$(compute "$(field wall "$many") * 1000" 0)"
row "1 value, muster, median of 20 (<= 15 ms)" "$(field cpu "$one")" "$(field tree_mb "$one")" "$(compute "$(field wall "$one") * 1000" 1)"
if reframe_ready; then
  reframe_check "$scratch/many.py" "$count"
  other=$(measure --log "$scratch/reframe.txt" -- "${reframe[@]}" -c "$scratch/many.py" -l)
  row "$count values, ReFrame $REFRAME_VERSION" "$(field cpu "$other")" "$(field tree_mb "$other")" "$(compute "$(field wall "$other") * 1000" 0)"
  row "factor" "$(compute "$(field cpu "$other") / $(field cpu "$many")" 0)" "$(compute "$(field tree_mb "$other") / $(field tree_mb "$many")" 1)" ""
fi
