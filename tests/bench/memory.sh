#!/usr/bin/env bash
# What does a waiting case cost? 10,000 local cases with four at once, and 10,000 cases of the fake scheduler that all wait
# at the same time. Peak memory and threads of the harness itself.
#   bash tests/bench/memory.sh [COUNT] [SECONDS-TO-WAIT]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-10000} seconds=${2:-30}

row() { printf '%-46s %10s %10s %10s %10s\n' "$@"; }
echo
row "muster -r" "peak MB" "anon MB" "threads" "wall s"

site 4
local_check "$scratch/local.yaml" "$count" true
few=$(measure --log "$scratch/local.txt" -- "${muster[@]}" -c "$scratch/local.yaml" -r -q)
row "$count local cases, 4 at once (<= 150 MB)" "$(field rss_mb "$few")" "$(field anon_mb "$few")" "$(field threads "$few")" "$(field wall "$few")"

site "$count"
cat >"$scratch/fake.yaml" <<END
name: waiting
valid_systems: ["bench:fake"]
parameters: { n: [$(values "$count")] }
fake:
  statuses:
    - { state: pending, why: quota }
    - { after_ms: $((seconds * 1000)), state: running, nodes: [node] }
    - { after_ms: $((seconds * 1000 + 10)), state: ended, exit: 0 }
sanity: []
END
all=$(measure --log "$scratch/fake.txt" -- "${muster[@]}" -c "$scratch/fake.yaml" -r -q)
row "$count fake cases, all at once (<= 150 MB)" "$(field rss_mb "$all")" "$(field anon_mb "$all")" "$(field threads "$all")" "$(field wall "$all")"
