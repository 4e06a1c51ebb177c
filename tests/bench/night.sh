#!/usr/bin/env bash
# The method of `muster night` on simulated worlds: false alarms, what is found and how soon, cost. Each figure beside its limit.
#   bash tests/bench/night.sh [SHARE]     SHARE of the worlds: 0.1 takes some seconds, 1 (the default) some minutes
MUSTER_BENCH_BINARY=none   # the example below is built instead
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

echo "building: cargo build --release -p muster-judge --example night"
(cd "$root" && cargo build --release --quiet -p muster-judge --example night)
measure --log "$scratch/rows" -- "${CARGO_TARGET_DIR:-$root/target}/release/examples/night" "${1:-1}" >"$scratch/cost"
cat "$scratch/rows" "$scratch/cost"
