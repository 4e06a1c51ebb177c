#!/usr/bin/env bash
# What dependencies cost: fake cases in chains of ten, each begun when the one before it has passed, and ReFrame beside it at a
# smaller count. The order is looked up in the results database. Once in memory and once on a disk: every case that others
# depend on keeps its stage folder until they are over.
#   tests/bench/chains.sh [CASES] [REFRAME_CASES]
# shellcheck source=tests/bench/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cases=${1:-10000} reframe_cases=${2:-200}
site 64

{
  for link in 0 1 2 3 4 5 6 7 8 9; do
    [ "$link" = 0 ] || echo ---
    printf 'name: link%s\nvalid_systems: ["bench:fake"]\nparameters: { n: [%s] }\n' "$link" "$(values $((cases / 10)))"
    [ "$link" = 0 ] || echo "depends_on: link$((link - 1))"
    echo 'sanity: []'
  done
} >"$scratch/chains.check.yaml"

pairs="FROM \"case\" u JOIN attempt au ON au.\"case\" = u.id, \"case\" w JOIN attempt aw ON aw.\"case\" = w.id
  WHERE u.display = 'link' || (CAST(substr(w.display, 5, 1) AS INTEGER) + 1) || substr(w.display, 6)"
bench_places
for place in "${places[@]}"; do
  export MUSTER_DB=$place/results.db
  line=$(measure -- "${muster[@]}" --prefix "$place" -c "$scratch/chains.check.yaml" -r -q)
  echo "muster, $cases fake cases in chains of 10, on $(stat -f -c %T "$place"): $line"
  echo "own CPU a case (<= 1 ms): $(compute "$(field cpu "$line") / $cases * 1000" 2) ms"
  links=$(sqlite_count "SELECT count(*) $pairs")
  wrong=$(sqlite_count "SELECT count(*) $pairs AND au.begun < aw.finished")
  passed=$(sqlite_count "SELECT count(*) FROM attempt WHERE outcome = 'pass'")
  echo "passed: $passed of $cases; begun before what they depend on: $wrong of $links"
done

if reframe_ready; then
  cat >"$scratch/chains.py" <<END
import reframe as rfm
import reframe.utility.sanity as sn


class link(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    executable = 'true'

    @sanity_function
    def fine(self):
        return sn.assert_true(True)
END
  for ((case = 0; case < reframe_cases; case++)); do
    printf '\n\n@rfm.simple_test\nclass link%s(link):\n    pass\n' "$case"
    [ $((case % 10)) = 0 ] || printf "\n    @run_after('init')\n    def wait(self):\n        self.depends_on('link%s')\n" $((case - 1))
  done >>"$scratch/chains.py"
  line=$(measure -- "${reframe[@]}" -c "$scratch/chains.py" -r)
  echo "ReFrame $REFRAME_VERSION, $reframe_cases local cases in chains of 10: $line"
fi
