#!/usr/bin/env bash
# What does a session lose whose harness is killed half-way, when another goes on from it? A session of local cases is ended by
# `kill -9` when half of them have a result, once gone on with by `--restore-session` and once by `muster attach`. Every case must
# stand exactly once in the joined report, and none that had a result may have run again. ReFrame 4.10.4 stores a session at its
# end only: after the kill there is nothing to restore.
#   bash tests/bench/restore.sh [CASES]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cases=${1:-1000}

site 16
local_check "$scratch/check.yaml" "$cases" "echo \${{ n }} >> $scratch/ran"
for how in restore attach; do
  rm -f "$scratch/ran" "$scratch"/results.db*
  : >"$scratch/first.txt"
  "${muster[@]}" -c "$scratch/check.yaml" -r >"$scratch/first.txt" 2>&1 &
  victim=$!
  while [ "$(grep -c '^\[ *OK' "$scratch/first.txt")" -lt $((cases / 2)) ]; do sleep 0.02; done
  kill -9 "$victim"
  wait "$victim" 2>/dev/null || true
  stored=$(sqlite_count "SELECT count(*) FROM attempt")
  if [ "$how" = restore ]; then again=("${muster[@]}" -c "$scratch/check.yaml" -r --restore-session); else again=("${muster[@]}" attach); fi
  "${again[@]}" >"$scratch/second.txt" 2>&1 || { tail -20 "$scratch/second.txt"; exit 1; }
  python3 - "$how" "$cases" "$stored" "$scratch" <<'END'
import collections, json, sys
how, cases, stored, scratch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
report = json.load(open(f"{scratch}/reports/out/latest.json"))
names = collections.Counter(case["name"] for case in report["cases"])
ran = collections.Counter(open(f"{scratch}/ran").read().split())
once = sum(count == 1 for count in names.values())
print(f"{how}: {stored} of {cases} results stored at the kill; joined report: {len(report['cases'])} results, {once} case(s) exactly once, "
      f"{report['totals']['passed']} passed; {sum(ran.values())} jobs ran, {sum(count > 1 for count in ran.values())} of them twice")
if len(report["cases"]) != cases or once != cases or report["totals"]["passed"] != cases or len(ran) != cases or sum(ran.values()) > cases + 16:
    sys.exit("wrong")
END
done
