#!/usr/bin/env bash
# What does Muster itself cost where a cluster costs nothing? Against the API server of tests/fake-api, in a process of its own,
# whose pods start at once:
#   COUNT cases of a pod that runs 5 s, AT_ONCE at once: ideal is 5 s for each full house, COUNT / AT_ONCE rounded up
#   MANY cases of a pod that runs long enough for all to run at once: peak memory of the harness alone
#   bash tests/bench/pods.sh [COUNT] [AT_ONCE] [MANY]
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-100} at_once=${2:-32} many=${3:-1000}
readonly RUNS=5 LONG=60 LIMIT=300

(cd "$root" && cargo build --quiet -p muster-fake-api)
server=${CARGO_TARGET_DIR:-$root/target}/debug/muster-fake-api

# fake_api SCRIPT: starts the server, with this script for all pods, and waits for its kubeconfig, but not for ever. The
# server ends by itself, should nobody be left to end it.
fake_api() {
  local waited
  : >"$scratch/kubeconfig"
  TMPDIR=$scratch timeout "$LIMIT" "$server" --script "$1" >"$scratch/kubeconfig" &
  api=$!
  for ((waited = 0; waited < 100; waited++)); do
    if [ -s "$scratch/kubeconfig" ]; then
      KUBECONFIG=$(<"$scratch/kubeconfig")
      export KUBECONFIG
      return
    fi
    sleep 0.1
  done
  echo "the fake API server did not start within 10 s" >&2
  exit 1
}
end_api() {
  [ -z "${api:-}" ] || kill "$api" 2>/dev/null || true
  api=
}
trap 'end_api; rm -rf "$scratch"' EXIT

# cases COUNT AT_ONCE: the site, and as many cases of one pod.
cases() {
  cat >"$scratch/site.yaml" <<END
name: bench
partitions: [{ name: pods, scheduler: k8s, environs: [default], max_jobs: $2, sched_options: { namespace: default } }]
environments: [{ name: default }]
END
  cat >"$scratch/check.yaml" <<END
name: pod
valid_systems: ["bench:pods"]
parameters: { n: [$(values "$1")] }
time_limit: 10m
max_pending_time: 10m
k8s_config:
  apiVersion: v1
  kind: Pod
  metadata: { name: pod }
  spec:
    restartPolicy: Never
    containers: [{ name: main, image: none, resources: { limits: { memory: 64Mi } } }]
sanity: [{ found: '^end' }]
END
}

run() { measure --repeat 1 --log "$scratch/log" -- timeout -k 5 "$LIMIT" "${muster[@]}" -c "$scratch/check.yaml" -r -q; }

fake_api "run ${RUNS}s; log end; exit 0"
cases "$count" "$at_once"
houses=$(((count + at_once - 1) / at_once))
ideal=$((houses * RUNS))
line=$(run)
end_api
printf '%s cases of %s s, %s at once, pods that start at once: %s s, ideal %s s: %s x (bound 1.05); processor time %s s\n' \
  "$count" "$RUNS" "$at_once" "$(field wall "$line")" "$ideal" "$(compute "$(field wall "$line") / $ideal" 3)" "$(field cpu "$line")"

fake_api "run ${LONG}s; log end; exit 0"
cases "$many" "$many"
line=$(run)
end_api
printf '%s pods at once: peak %s MB of the harness (bound 150), processor time %s s, wall %s s\n' \
  "$many" "$(field tree_mb "$line")" "$(field cpu "$line")" "$(field wall "$line")"
