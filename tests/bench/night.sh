#!/usr/bin/env bash
# The method of `muster night` on simulated worlds: false alarms, what is found and how soon, cost. Each figure beside its limit.
# Then the command itself: a night of 5,000 metrics, of which 129 nights were judged before.
#   bash tests/bench/night.sh [SHARE]     SHARE of the worlds: 0.1 takes some seconds, 1 (the default) some minutes, 0 none
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if [ "${1:-1}" != 0 ]; then
  echo "building: cargo build --release -p muster-judge --example night"
  (cd "$root" && cargo build --release --quiet -p muster-judge --example night)
  measure --log "$scratch/rows" -- "${CARGO_TARGET_DIR:-$root/target}/release/examples/night" "${1:-1}" >"$scratch/cost"
  cat "$scratch/rows" "$scratch/cost"
fi

# As at a site: one system. The example sites of the checkout would be read, too.
cd "$scratch"
site 1
sed -i 's/^name: bench/name: s/' site.yaml
muster=("$MUSTER_BENCH_BINARY" -C site.yaml)
: >"$MUSTER_DB"
"$MUSTER_BENCH_BINARY" results migrate >/dev/null
python3 "$here/results.py" "$MUSTER_DB" 130 1000 130
"$MUSTER_BENCH_BINARY" results rebuild >/dev/null
# Nothing is judged yet: the nights before are, once.
first=$(measure --log "$scratch/first" --expect 0,1 -- "${muster[@]}" night --night 2026-11-23)
for _ in 1 2 3 4 5; do
  cp "$MUSTER_DB" "$scratch/copy.db"
  MUSTER_DB=$scratch/copy.db measure --log "$scratch/night" --expect 0,1 -- "${muster[@]}" night >>"$scratch/nights"
done
grep -q '5000' "$scratch/night" || { echo "not every metric was judged:"; tail -20 "$scratch/night"; exit 1; }
row() { printf '%-62s %10s %10s\n' "$@"; }
row "muster night, 5,000 metrics" "CPU s" "peak MB"
row "129 nights that nobody has judged (no limit)" "$(field cpu "$first")" "$(field tree_mb "$first")"
last=$(median cpu "$scratch/nights")
row "the night after them (<= 0.3 s, 50 MB)" "$(field cpu "$last")" "$(field tree_mb "$last")"
