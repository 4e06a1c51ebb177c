#!/usr/bin/env bash
# Judging a large stdout: three sanity and three performance patterns in one go, beside six ripgrep runs that count the
# same patterns one after the other. Processor seconds and the peak of anonymous memory.
#   bash tests/bench/judge.sh [MIB]
# Last, three asserts over a million matches. To compare them with an older revision, copy the example into a checkout of
# it, build it there, and name it: MUSTER_BENCH_OLD_JUDGE=OLD/target/release/examples/judge. Both run five times in
# turn, and the medians of their processor seconds are compared.
# Needs ripgrep and, for the default of 1024 MiB, twice as much room for temporary files (TMPDIR).
MUSTER_BENCH_BINARY=none   # the example below is built instead
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
mib=${1:-1024}
command -v rg >/dev/null || { echo "judge.sh needs ripgrep: apt-get install ripgrep" >&2; exit 2; }

echo "building: cargo build --release -p muster-session --example judge"
(cd "$root" && cargo build --release --quiet -p muster-session --example judge)
judge=${CARGO_TARGET_DIR:-$root/target}/release/examples/judge

# The log of a training run, about 80 bytes a line: a figure every 100 lines, a table of three lines every 1,000.
piece=$((mib < 16 ? mib : 16))
awk -v bytes=$((piece * 1048576)) 'BEGIN {
  srand(7)
  while (written < bytes) {
    line = sprintf("step %08d loss %.6f grad %.4f tokens/s %.1f lr 3.0e-04 elapsed %.3f s node%03d", ++n, 3 * rand(), rand(), 1e5 * rand(), n / 9, n % 64)
    if (n % 100 == 0) line = sprintf("%s\nerr = %.3e", line, rand() / 1e6)
    if (n % 100 == 50) line = sprintf("%s\n= %.3f double-precision GFLOP/s at 30 flops per interaction", line, 7400 + 80 * rand())
    if (n % 1000 == 0) line = sprintf("%s\nREAD: IOPS=%d\n  bandwidth\n  %.1f MB/s", line, 1e4 * rand(), 3000 * rand())
    print line
    written += length(line) + 1
  }
}' >"$scratch/piece"
for ((n = 0; n < mib; n += piece)); do cat "$scratch/piece"; done >"$scratch/log"

patterns=(
  'double-precision GFLOP/s'
  'CUDA error|Xid|ECC'
  'loss (nan|inf)'
  '= (\d+\.\d+) double-precision GFLOP/s'
  'err = ([0-9.e-]+)'
  'READ[\s\S]*?(?P<value>[\d.]+) (?P<unit>[KMGT]B/s)'
)
row() { printf '%-78s %9s %9s %9s\n' "$@"; }
echo
row "$(($(wc -c <"$scratch/log") >> 20)) MiB, $(wc -l <"$scratch/log") lines" "CPU s" "wall s" "anon MB"
sum=0
for pattern in "${patterns[@]}"; do
  cost=$(measure --expect 0,1 --log "$scratch/count" -- rg -U --count-matches -e "$pattern" "$scratch/log")
  [ "$pattern" != "${patterns[0]}" ] || count=$(cat "$scratch/count")
  sum=$(compute "$sum + $(field cpu "$cost")" 3)
  row "rg -U --count-matches '$pattern'" "$(field cpu "$cost")" "$(field wall "$cost")" "$(field anon_mb "$cost")"
done
cost=$(measure --log "$scratch/judged" -- "$judge" "$scratch/log" "$count")
row "all of them, judged (<= 64 MB)" "$(field cpu "$cost")" "$(field wall "$cost")" "$(field anon_mb "$cost")"
sed 's/$/\r/' "$scratch/log" >"$scratch/crlf"
crlf=$(measure --log "$scratch/judged-crlf" -- "$judge" "$scratch/crlf" "$count")
row "the log with CRLF, judged (<= 64 MB)" "$(field cpu "$crlf")" "$(field wall "$crlf")" "$(field anon_mb "$crlf")"
row "beside the log with LF (<= 1.3)" "$(compute "$(field cpu "$crlf") / $(field cpu "$cost")" 2)" "" ""
cmp "$scratch/judged" "$scratch/judged-crlf"
row "beside the sum of the six (<= 0.3)" "$(compute "$(field cpu "$cost") / $sum" 2)" "" ""
sed 's/^/  /' "$scratch/judged"

awk 'BEGIN { srand(7); for (n = 1; n <= 1000000; n++) printf "step %d loss %.4f\n", n, 0.1 + 3 * rand() }' >"$scratch/million"
asserts() { # PROGRAM
  measure --log "$scratch/judged" -- "$1" "$scratch/million" asserts
  grep -q '^pass' "$scratch/judged" || { cat "$scratch/judged" >&2; return 1; }
}
for _ in 1 2 3 4 5; do
  asserts "$judge" >>"$scratch/new"
  [ -z "${MUSTER_BENCH_OLD_JUDGE:-}" ] || asserts "$MUSTER_BENCH_OLD_JUDGE" >>"$scratch/old"
done
new=$(field cpu "$(median cpu "$scratch/new")")
row "three asserts over 1,000,000 matches, median of 5" "$new" "" ""
[ ! -e "$scratch/old" ] || {
  old=$(field cpu "$(median cpu "$scratch/old")")
  row "the same, by the older program" "$old" "" ""
  row "beside it (<= 1.10)" "$(compute "$new / $old" 2)" "" ""
}
