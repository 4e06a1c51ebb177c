#!/usr/bin/env bash
# How often are EC2 and S3 asked, and what does Muster add to what jobs take? COUNT jobs of one instance, all at once, of SECONDS each,
# on the EC2 of the tests (tests/ec2/run: moto, and instances that are processes of this machine).
#   bash tests/bench/ec2.sh [COUNT] [SECONDS]
if [ -z "${MUSTER_EC2:-}" ]; then
  # shellcheck source=tests/bench/lib.sh
  source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
  export MUSTER_BENCH_BINARY
  "$root/tests/ec2/run" bash "$here/ec2.sh" "$@"
  exit
fi
socket=$MUSTER_EC2 python=$MUSTER_EC2_PYTHON
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
"$python" "$here/ec2.py" "$socket" "$scratch" "${1:-50}" "${2:-60}" "$MUSTER_BENCH_BINARY"
