#!/usr/bin/env bash
# What does Muster add to what Slurm itself needs? On real Slurms of three nodes (tests/slurm/run: Linux, root):
#   COUNT trivial jobs, all of them submitted at once, on 12 CPUs; the same script from a loop of sbatch; and ReFrame
#   one job of SECONDS, with and without accounting: how often Slurm is asked
#   32 jobs that run and WAITING that wait: the first minute, MINUTES at the rate that follows, what an hour costs, and Ctrl-C
#   bash tests/bench/slurm.sh [COUNT] [SECONDS] [MINUTES] [REPEAT] [WAITING]     COUNT 0: only the last
# Commands of Slurm are counted by programs of the same names on the PATH, in runs that are not timed; but for the hour.
if [ -z "${MUSTER_SLURM:-}" ]; then
  # shellcheck source=tests/bench/lib.sh
  source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
  export MUSTER_BENCH_BINARY
  if reframe_ready; then :; fi   # in here is no network
  "$root/tests/slurm/run" --no-cluster bash "$here/slurm.sh" "$@"
  exit
fi
slurm_dir=$MUSTER_SLURM_DIR
export TMPDIR=$slurm_dir   # in memory, and every node sees it
# shellcheck source=tests/bench/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
count=${1:-100} seconds=${2:-45} minutes=${3:-6} repeat=${4:-3} waiting=${5:-1000}
readonly RUNNING=32

# Everything is a user's: Slurm sends root the jobs of all users.
# ReFrame and its Python may lie in a folder of root's, so this user may read everything.
as_user=(setpriv --reuid alice --regid alice --clear-groups --inh-caps +dac_read_search --ambient-caps +dac_read_search --
  env "HOME=$scratch" USER=alice LOGNAME=alice)
cp "$MUSTER_BENCH_BINARY" "$scratch/muster"
muster[0]=$scratch/muster
mkdir "$scratch/bin"
for name in sbatch squeue sacct scontrol sinfo scancel; do
  printf '#!/bin/sh\necho %s >>%s/commands\nexec %s "$@"\n' "$name" "$scratch" "$(command -v "$name")" >"$scratch/bin/$name"
done
chmod 755 "$scratch" "$scratch"/bin/*

# cluster NAME OPTION...: starts one, and Slurm's commands are those of it.
cluster() {
  local name=$1
  shift
  MUSTER_SLURM_DIR=$slurm_dir "$root/tests/slurm/cluster" up "$slurm_dir/$name" "$@" >"$slurm_dir/$name.log" 2>&1 || {
    cat "$slurm_dir/$name.log" >&2
    exit 1
  }
  export SLURM_CONF=$slurm_dir/$name/slurm.conf
}
# down NAME
down() { MUSTER_SLURM_DIR=$slurm_dir "$root/tests/slurm/cluster" down "$slurm_dir/$1"; }

# slurm_site MAX_JOBS OPTIONS: one partition.
slurm_site() {
  cat >"$scratch/site.yaml" <<END
name: bench
partitions: [{ name: slurm, scheduler: slurm, launcher: none, environs: [default], max_jobs: $1 $2 }]
environments: [{ name: default }]
END
}
# slurm_check COUNT EXECUTABLE [MORE]
slurm_check() {
  cat >"$scratch/check.yaml" <<END
name: job
valid_systems: ["*"]
parameters: { n: [$(values "$1")] }
executable: $2
sanity: []
${3:-}
END
  chown -R alice: "$scratch"
}

# commands: how many of each, since the file was emptied.
commands() { sort "$scratch/commands" | uniq -c | awk '{ printf "%s%s %s", (NR > 1 ? ", " : ""), $1, $2; sum += $1 } END { printf " (%s in all)\n", sum }'; }
# calls NAME: how many of one.
calls() { grep -c "^$1\$" "$scratch/commands" || true; }
# counted COMMAND...: runs it once, and every command of Slurm is counted.
counted() {
  : >"$scratch/commands"
  chown alice "$scratch/commands"
  PATH=$scratch/bin:$PATH measure --log "$scratch/counted.txt" -- "${as_user[@]}" "$@"
}

row() { printf '%-52s %8s %8s %8s\n' "$@"; }
# cost NAME FILE
cost() {
  local line
  line=$(median wall "$2")
  row "$1" "$(field wall "$line")" "$(field cpu "$line")" "$(field rss_mb "$line")"
}

# reframe_slurm BACKEND: ReFrame and its check for this cluster.
reframe_slurm() {
  reframe_ready || return 1
  cat >"$scratch/settings.py" <<END
site_configuration = {
    'systems': [{
        'name': 'bench', 'hostnames': ['.*'],
        'partitions': [{'name': 'slurm', 'scheduler': '$1', 'launcher': 'local', 'environs': ['default'], 'max_jobs': $count}],
    }],
    'environments': [{'name': 'default'}],
}
END
  reframe_check "$scratch/check.py" "$count"
  chown -R alice: "$scratch"
}

# bare: as many jobs of the very script from a loop, and squeue until all have ended.
bare() {
  cat >"$scratch/bare.sh" <<END
for n in \$(seq $count); do sbatch --parsable $scratch/bare/rfm_job.sh >/dev/null || exit; done
while [ -n "\$(squeue -h --me)" ]; do sleep 0.2; done
END
  measure --repeat "$repeat" -- "${as_user[@]}" sh "$scratch/bare.sh"
}

# many NAME BACKEND: the trivial jobs, each way in turn.
many() {
  local label="$count jobs, $1" round
  rm -f "$scratch"/*.costs
  slurm_site "$count" ""
  slurm_check "$count" "'true'"
  for round in $(seq "$repeat"); do
    measure --log "$scratch/run.txt" -- "${as_user[@]}" "${muster[@]}" --prefix "$scratch/$1.$round" -c "$scratch/check.yaml" -r >>"$scratch/muster.costs"
  done
  # The script of one case without its guard, which lets one job run: the plain thing that a user would submit.
  mkdir -p "$scratch/bare"
  printf '#!/bin/sh\n#SBATCH --job-name=bare\n#SBATCH --output=/dev/null\n#SBATCH --time=11\n#SBATCH --ntasks=1\ntrue\n' >"$scratch/bare/rfm_job.sh"
  chown -R alice: "$scratch/bare"
  bare >"$scratch/bare.costs"
  echo
  row "$label" "wall s" "CPU s" "peak MB"
  cost "sbatch in a loop, squeue until the end" "$scratch/bare.costs"
  cost "muster (<= 6 s wall, <= 1.5 s CPU)" "$scratch/muster.costs"
  counted "${muster[@]}" --prefix "$scratch/$1.counted" -c "$scratch/check.yaml" -r >/dev/null
  printf '  commands: %s\n' "$(commands)"
  if reframe_slurm "$2"; then
    measure --log "$scratch/reframe.txt" -- "${as_user[@]}" "${reframe[@]}" -c "$scratch/check.py" -r >"$scratch/reframe.costs"
    cost "ReFrame $REFRAME_VERSION, backend $2" "$scratch/reframe.costs"
    counted "${reframe[@]}" -c "$scratch/check.py" -r >/dev/null
    printf '  commands: %s\n' "$(commands)"
  fi
}

# one NAME: a job that runs longer.
one() {
  local line
  slurm_site 8 ""
  slurm_check 1 "sleep $seconds"
  line=$(counted "${muster[@]}" --prefix "$scratch/one.$1" -c "$scratch/check.yaml" -r)
  row "one job of $seconds s, $1 (<= 20 commands, 0 sacct)" "$(field wall "$line")" "$(field cpu "$line")" "$(field rss_mb "$line")"
  printf '  commands: %s\n' "$(commands)"
}

# spent PID: processor seconds of a process, and of the children that it waited for.
spent() { awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%.2f %.2f", ($12 + $13) / ticks, ($14 + $15) / ticks }' "/proc/$1/stat"; }
peak() { awk '$1 == "VmHWM:" { printf "%.1f", $2 / 1024 }' "/proc/$1/status"; }
in_state() { squeue -h -u alice -t "$1" -o %A | wc -l; }

# hour NAME: what a queue costs in which nothing happens.
hour() {
  local begun ready settled pid at rest own_ready own_settled own_end commands_ready commands_settled commands_end
  local asked_ready asked_settled asked_end
  slurm_site "$((RUNNING + waiting))" ", time_limit: 55m, max_pending_time: 5h, sched_options: { licenses: seat }"
  slurm_check "$((RUNNING + waiting))" "sleep 3200"
  : >"$scratch/commands"
  chown alice "$scratch/commands"
  begun=$(date +%s.%N)
  PATH=$scratch/bin:$PATH "${as_user[@]}" "${muster[@]}" --prefix "$scratch/hour" -c "$scratch/check.yaml" -r >"$scratch/hour.txt" 2>&1 &
  pid=$!
  until [ "$(calls sbatch)" -eq $((RUNNING + waiting)) ] && [ "$(in_state R)" -eq "$RUNNING" ]; do
    kill -0 "$pid" 2>/dev/null || { tail -n 20 "$scratch/hour.txt"; exit 1; }
    sleep 0.5
  done
  ready=$(date +%s.%N) asked_ready=$(calls squeue)
  read -r own_ready commands_ready <<<"$(spent "$pid")"
  echo
  printf '%s jobs run and %s wait, %s\n' "$RUNNING" "$(in_state PD)" "$1"
  printf '  submitting them, %s s: %s s CPU of muster and %s s of the commands, %s squeue\n' "$(compute "$ready - $begun" 1)" \
    "$own_ready" "$commands_ready" "$asked_ready"
  # The look for what has just started is more frequent than any later one.
  sleep 60
  settled=$(date +%s.%N) asked_settled=$(calls squeue)
  read -r own_settled commands_settled <<<"$(spent "$pid")"
  sleep "$((minutes * 60))"
  at=$(date +%s.%N) asked_end=$(calls squeue)
  read -r own_end commands_end <<<"$(spent "$pid")"
  printf '  the minute after that: %s s CPU of muster and %s s of the commands, %s squeue\n' \
    "$(compute "$own_settled - $own_ready" 2)" "$(compute "$commands_settled - $commands_ready" 2)" "$((asked_settled - asked_ready))"
  printf '  the next %s s: %s s CPU of muster and %s s of the commands, %s squeue\n' "$(compute "$at - $settled" 0)" \
    "$(compute "$own_end - $own_settled" 2)" "$(compute "$commands_end - $commands_settled" 2)" "$((asked_end - asked_settled))"
  # What is measured of the begin, and the rest of the hour at the rate of the last part.
  rest="(3600 - ($settled - $begun)) / ($at - $settled)"
  printf '  an hour, the rest at that rate: %s s CPU of muster (<= 5) and %s s of the commands, %s squeue (<= 400)\n' \
    "$(compute "$own_settled + ($own_end - $own_settled) * $rest" 2)" \
    "$(compute "$commands_settled + ($commands_end - $commands_settled) * $rest" 2)" \
    "$(compute "$asked_settled + ($asked_end - $asked_settled) * $rest" 0)"
  printf '  peak memory of muster: %s MB (<= 60)\n' "$(peak "$pid")"
  : >"$scratch/commands"
  at=$(date +%s.%N)
  kill -INT "$pid"
  wait "$pid" || true
  printf '  Ctrl-C: ended after %s s, %s jobs left; commands: %s\n' "$(compute "$(date +%s.%N) - $at" 1)" "$(in_state PD,R,CG)" "$(commands)"
}

if [ "$count" -gt 0 ]; then
  cluster plain --min-job-age 300
  many "without accounting" squeue
  one "without accounting"
  down plain
  cluster accounted --accounting --min-job-age 300
  many "with accounting" slurm
  one "with accounting"
  down accounted
fi
cluster large --cpus 12 --min-job-age 300
hour "without accounting"
down large
