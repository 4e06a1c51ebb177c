#!/usr/bin/env bash
# What does a killed harness lose? `kill -9` at random moments of a 200-case session. Every case that was reported as
# finished must be stored, the database must be sound, and after `muster sweep` no process of the session may live.
#   bash tests/bench/crash.sh [ROUNDS] [CASES]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
rounds=${1:-20} cases=${2:-200}

site 16
# Every tenth case leaves a daemon in a session of its own, which no process group reaches.
cat >"$scratch/check.yaml" <<END
name: crash
valid_systems: ["bench:local"]
parameters: { n: [$(values "$cases")] }
variables: { daemon: "\${{ n % 10 == 0 ? 'setsid sleep 300 &' : ':' }}" }
prerun_cmds: ["\${{ daemon }}"]
executable: sleep
executable_opts: ["0.1"]
sanity: []
END
python3 "$here/crash.py" "$rounds" "$scratch" "${muster[@]}"
