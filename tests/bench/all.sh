#!/usr/bin/env bash
# All figures of this folder, one after the other: bash tests/bench/all.sh
set -uo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
failed=
for name in list run chains memory long judge night crash restore pods k8s slurm; do
  printf '\n=== %s\n' "$name"
  bash "$here/$name.sh" || failed="$failed $name"
done
[ -z "$failed" ] || { printf '\nfailed:%s\n' "$failed"; exit 1; }
