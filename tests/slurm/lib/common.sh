# shellcheck shell=bash
# What the scripts of this folder share. Sourced, never run.

SLURM_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Accounting's first data folder is made once and copied afterwards.
SLURM_CACHE=${CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster-ci}/slurm
# The address of all nodes: reserved for documentation, so it is nobody's. It exists only inside the namespaces.
readonly SLURM_HOME SLURM_CACHE SLURM_ADDRESS=192.0.2.1

say() { printf 'slurm: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}
