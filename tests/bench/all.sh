#!/usr/bin/env bash
# All figures of this folder, one after the other: bash tests/bench/all.sh
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
for name in list run memory judge crash; do
  [ -f "$here/$name.sh" ] || continue
  printf '\n=== %s\n' "$name"
  bash "$here/$name.sh"
done
