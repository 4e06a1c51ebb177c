# What the benchmarks share: a release build, a site of their own, a scratch folder, and ReFrame beside it.
# Sourced by the scripts of this folder, never run.
#
# Set MUSTER_BENCH_BINARY to measure a build you have; REFRAME=no to leave ReFrame out.
# shellcheck shell=bash

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
readonly REFRAME_VERSION=4.10.4

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Nothing of the user's: neither results, nor settings, nor sites.
for name in $(env | sed -n 's/^\(MUSTER_[A-Z_]*\)=.*/\1/p' | grep -v '^MUSTER_BENCH'); do unset "$name"; done
export MUSTER_DB=$scratch/results.db MUSTER_PREFIX=$scratch

if [ -z "${MUSTER_BENCH_BINARY:-}" ]; then
  echo "building: cargo build --release"
  (cd "$root" && cargo build --release --quiet)
  MUSTER_BENCH_BINARY=${CARGO_TARGET_DIR:-$root/target}/release/muster
fi
export -n MUSTER_BENCH_BINARY   # Muster warns of MUSTER_ variables that it does not know

# muster ARGUMENTS...: the argv, in the array `muster`, with the bench's own site and folders.
# shellcheck disable=SC2034  # used by those who source this
muster=("$MUSTER_BENCH_BINARY" -C "$scratch/site.yaml" --system bench --nocolor)

# site MAX_JOBS: one partition of local processes and one of the fake scheduler.
site() {
  cat >"$scratch/site.yaml" <<END
name: bench
partitions:
  - { name: local, scheduler: local, environs: [default], max_jobs: $1 }
  - { name: fake, scheduler: fake, environs: [default], max_jobs: $1 }
environments: [{ name: default }]
END
}

# values COUNT: 0, 1, 2, ...
values() { seq -s ', ' 0 "$(($1 - 1))"; }

# local_check FILE COUNT EXECUTABLE: as many cases of one local process.
local_check() {
  cat >"$1" <<END
name: trivial
valid_systems: ["bench:local"]
parameters: { n: [$(values "$2")] }
executable: '$3'
sanity: []
END
}

# bench_places: where a bench of many small files runs, in the array `places`: in memory (/dev/shm) and on a disk (/var/tmp), or in
# TMPDIR alone. The figure of ext4 is also that of its other users: for five seconds after files were removed, it searches past
# each of them whenever one is created.
bench_places() {
  places=("$scratch")
  [ -z "${TMPDIR:-}" ] || return 0
  places=()
  local place
  for place in /dev/shm /var/tmp; do
    [ ! -d "$place" ] || places+=("$(mktemp -d -p "$place")")
  done
  trap 'rm -rf "$scratch" "${places[@]}"' EXIT
}

measure() { python3 "$here/measure.py" "$@"; }

# field NAME LINE: one value of what measure printed.
field() { sed -n "s/.*\b$1=\([^ ]*\).*/\1/p" <<<"$2"; }

# median NAME FILE: of the lines that measure printed, the one whose value of that name is in the middle.
median() { sed "s/.*\\b$1=\\([^ ]*\\).*/\\1 &/" "$2" | sort -g | cut -d ' ' -f 2- | sed -n "$((($(wc -l <"$2") + 1) / 2))p"; }

# least NAME FILE: the line whose value of that name is the smallest: on a busy machine the one least disturbed.
least() { sed "s/.*\\b$1=\\([^ ]*\\).*/\\1 &/" "$2" | sort -g | cut -d ' ' -f 2- | sed -n 1p; }

# sqlite_count SQL: one number from the results database.
sqlite_count() { python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone()[0])' "$MUSTER_DB" "$1"; }

compute() { awk "BEGIN { printf \"%.$2f\", $1 }"; }

# reframe_ready: sets the argv, in the array `reframe`; installs ReFrame into a virtual environment outside the checkout, once. False if it is not wanted.
reframe_ready() {
  [ "${REFRAME:-yes}" != no ] || return 1
  local venv=${XDG_CACHE_HOME:-$HOME/.cache}/muster-bench/reframe-$REFRAME_VERSION
  if [ ! -x "$venv/bin/reframe" ]; then
    echo "installing ReFrame $REFRAME_VERSION into $venv: pip install reframe-hpc"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "reframe-hpc==$REFRAME_VERSION"
  fi
  # Its reports and logs go to the scratch folder, not to the user's.
  # shellcheck disable=SC2034
  reframe=(env "HOME=$scratch" "TMPDIR=$scratch" "$venv/bin/reframe" -C "$scratch/settings.py" --prefix "$scratch/reframe")
  cat >"$scratch/settings.py" <<'END'
site_configuration = {
    'systems': [{
        'name': 'bench', 'hostnames': ['.*'],
        'partitions': [{
            'name': 'local', 'scheduler': 'local', 'launcher': 'local', 'environs': ['default'], 'max_jobs': 32,
        }],
        'max_local_jobs': 32,
    }],
    'environments': [{'name': 'default'}],
}
END
}

# reframe_check FILE COUNT: the same cases for ReFrame.
reframe_check() {
  cat >"$1" <<END
import reframe as rfm
import reframe.utility.sanity as sn

@rfm.simple_test
class trivial(rfm.RunOnlyRegressionTest):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    n = parameter(range($2))
    executable = 'true'

    @sanity_function
    def fine(self):
        return sn.assert_true(True)
END
}
