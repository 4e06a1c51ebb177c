#!/usr/bin/env bash
# What does Muster add to what the cluster itself needs? 100 cases of one Pod that sleeps 5 s, 32 at once, against one plain
# Job with completions 100 and parallelism 32 of the same container, each with its deletion, one after the other.
#   bash tests/bench/k8s.sh [COUNT] [AT_ONCE]
# Starts a cluster (tests/cluster/run: Linux, root). Requests are counted in the API server's audit log.
if [ -z "${MUSTER_CLUSTER:-}" ]; then
  # shellcheck source=tests/bench/lib.sh
  source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
  export MUSTER_BENCH_BINARY
  "$root/tests/cluster/run" bash "$here/k8s.sh" "$@"
  exit
fi
audit=$MUSTER_CLUSTER_DIR/audit.log
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-100} at_once=${2:-32}

container="{ name: main, image: 'rfm.test/busybox:1', command: [sh, -c, 'echo begin; sleep 5; echo end'], resources: { requests: { cpu: 1m } } }"
cat >"$scratch/check.yaml" <<END
name: sleeper
valid_systems: ["bench:pods"]
parameters: { n: [$(values "$count")] }
time_limit: 5m
max_pending_time: 10m
k8s_config:
  apiVersion: v1
  kind: Pod
  metadata: { name: sleeper }
  spec:
    restartPolicy: Never
    terminationGracePeriodSeconds: 1
    containers: [$container]
sanity: [{ found: '^end' }]
END
cat >"$scratch/site.yaml" <<END
name: bench
partitions: [{ name: pods, scheduler: k8s, environs: [default], max_jobs: $at_once, sched_options: { namespace: bench } }]
environments: [{ name: default }]
END
cat >"$scratch/job.yaml" <<END
apiVersion: batch/v1
kind: Job
metadata: { name: yardstick, namespace: bench }
spec:
  completions: $count
  parallelism: $at_once
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [$container]
END
kubectl create namespace bench >/dev/null
until kubectl -n bench get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done

now() { date +%s.%N; }

yardstick() {
  local begun created
  begun=$(now)
  kubectl create -f "$scratch/job.yaml" >/dev/null
  kubectl -n bench wait --for=condition=complete --timeout=10m job/yardstick >/dev/null
  created=$(now)
  kubectl -n bench delete job yardstick --cascade=foreground --timeout=5m >/dev/null
  job_run=$(compute "$created - $begun" 1) job_delete=$(compute "$(now) - $created" 1)
  job_all=$(compute "$job_run + $job_delete" 1)
}

# A request that lasts, a log or a watch, has a line for its beginning and one for its end.
requests() { sed -n 's|.*"auditID":"\([^"]*\)".*"userAgent":"muster/.*|\1|p' "$audit" | sort -u | wc -l; }

yardstick
printf 'one Job, completions %s, parallelism %s: %s s, and %s s to delete it: %s s\n' "$count" "$at_once" "$job_run" "$job_delete" "$job_all"
before=$(requests)
line=$(measure --repeat 1 --log "$scratch/log" -- "${muster[@]}" -c "$scratch/check.yaml" -r)
wall=$(field wall "$line") cpu=$(field cpu "$line")
left=$(kubectl -n bench get pods -l rfm -o name | wc -l)
printf 'muster, %s cases, %s at once: %s s, everything deleted (%s pods left)\n' "$count" "$at_once" "$wall" "$left"
printf '  %s\n' "$line"
printf '  requests to the API server: %s, %s a case\n' "$(($(requests) - before))" "$(compute "($(requests) - $before) / $count" 2)"
printf '  against the Job: %s x (bound 1.15); own processor time %s s (bound 1)\n' "$(compute "$wall / $job_all" 2)" "$cpu"
