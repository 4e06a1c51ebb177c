#!/usr/bin/env bash
# What does Muster add when the cluster adds nothing? Against an API server whose pods start at once (tests/fake-api):
# 100 cases of a Pod that runs 5 s, 32 at once, against the time that this must take; and 1,000 cases at once, for their memory.
#   bash tests/bench/pods.sh
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

server=${MUSTER_BENCH_FAKE_API:-}
if [ -z "$server" ]; then
  (cd "$root" && cargo build --release --quiet -p muster-fake-api)
  server=${CARGO_TARGET_DIR:-$root/target}/release/muster-fake-api
fi
coproc api { exec "$server" --script 'run 5s; lines 2 0ms'; }
trap 'kill "$api_PID" 2>/dev/null; rm -rf "$scratch"' EXIT
read -r KUBECONFIG <&"${api[0]}"
export KUBECONFIG

# pods COUNT AT_ONCE: a line of measure.py for so many cases.
pods() {
  cat >"$scratch/site.yaml" <<END
name: bench
partitions: [{ name: pods, scheduler: k8s, environs: [default], max_jobs: $2, sched_options: { namespace: default } }]
environments: [{ name: default }]
END
  cat >"$scratch/check.yaml" <<END
name: sleeper
valid_systems: ["bench:pods"]
parameters: { n: [$(values "$1")] }
k8s_config:
  apiVersion: v1
  kind: Pod
  metadata: { name: sleeper }
  spec: { restartPolicy: Never, containers: [{ name: main, image: none }] }
sanity: []
END
  measure --repeat 1 --log "$scratch/log" -- "${muster[@]}" -c "$scratch/check.yaml" -r
}

line=$(pods 100 32)
ideal=20
printf '100 cases of 5 s, 32 at once: %s s, %s x ideal (bound 1.05)\n  %s\n' \
  "$(field wall "$line")" "$(compute "$(field wall "$line") / $ideal" 3)" "$line"
line=$(pods 1000 1000)
printf '1,000 cases at once: %s MB (bound 150), %s threads\n  %s\n' "$(field rss_mb "$line")" "$(field threads "$line")" "$line"
