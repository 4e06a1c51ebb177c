#!/usr/bin/env bash
# What does an attempt cost in a session that runs for days? The same cases again and again on the fake scheduler: memory and
# processor time of the harness and its judges when so many attempts have ended, from a tenth of all on.
#   bash tests/bench/long.sh [ATTEMPTS] [CASES]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
attempts=${1:-400000} cases=${2:-400}

site "$cases"
cat >"$scratch/long.yaml" <<END
name: long
valid_systems: ["bench:fake"]
parameters: { n: [$(values "$cases")] }
fake:
  statuses: [{ state: ended, exit: 0 }]
  logs: [{ text: "speed: 12.5\n" }]
sanity: [{ found: speed }]
perf_variables: { speed: { pattern: 'speed: (.*)', unit: MB/s } }
END
python3 "$here/long.py" "$attempts" -- "${muster[@]}" -c "$scratch/long.yaml" -r --reruns "$((attempts / cases - 1))"
