# shellcheck shell=bash
# What a cluster leaves outside its namespaces, and how it goes away again: cgroups, sysctls, mount points, one folder.
#
# Several clusters may run side by side. The first one notes how it found the machine, the last one puts that back. A cluster
# that was killed in the middle is cleaned up by whoever comes next. Sourced, never run.

readonly CLUSTERS=/var/lib/muster-cluster
readonly CGROUP=muster-cluster
# What the kubelet sets for all of the machine.
readonly SYSCTLS="vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes"
# Paths that containerd, its network plugins and the kubelet know by heart. Each cluster mounts something of its own there.
readonly MOUNT_POINTS="/run/containerd /run/netns /var/lib/cni /var/lib/kubelet /var/log/containers"

# A folder can be locked as well as a file, and is there already.
lock_host() { exec 8</var/lib && flock 8; }
unlock_host() { exec 8<&-; }

# claim_host: prints the folder of a new cluster that belongs to this process.
claim_host() {
  local folder
  lock_host
  forget_dead_clusters
  if [ ! -d "$CLUSTERS" ]; then
    mkdir -m 700 "$CLUSTERS"
    note_host >"$CLUSTERS/found"
  fi
  folder=$(mktemp -d "$CLUSTERS/XXXX")
  printf '%s %s\n' $$ "$(start_time $$)" >"$folder/owner"
  unlock_host
  printf '%s\n' "$folder"
}

# release_host FOLDER: to be called when none of the cluster's processes is left.
release_host() {
  lock_host
  rm -f "$1/owner"
  forget_dead_clusters
  unlock_host
}

# note_host: how to put the machine back, as commands, the mount points' parents last.
note_host() {
  local name path
  for name in $SYSCTLS; do printf 'echo %s >/proc/sys/%s\n' "$(cat "/proc/sys/$name")" "$name"; done
  for path in $MOUNT_POINTS; do
    if [ ! -d "$path" ]; then
      mkdir -p "$path"
      printf 'rmdir %s\n' "$path"
    fi
  done
}

forget_dead_clusters() {
  local folder live=0
  [ -d "$CLUSTERS" ] || return 0
  for folder in "$CLUSTERS"/????; do
    [ -d "$folder" ] || continue
    if owner_lives "$folder"; then
      live=1
    else
      remove_cgroups "${folder##*/}"
      rm -rf --one-file-system "$folder"
    fi
  done
  if [ "$live" -eq 0 ]; then
    bash "$CLUSTERS/found" 2>/dev/null || true
    rm -rf --one-file-system "$CLUSTERS"
  fi
}

# A process id alone may have been given to someone else since.
owner_lives() {
  local pid started
  { read -r pid started <"$1/owner"; } 2>/dev/null && [ "$(start_time "$pid")" = "$started" ]
}

start_time() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d' ' -f20; }

hierarchies() { awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts; }

# make_cgroups ID NODE...: a root for each node, or else each kubelet would kill the other's pods as orphans.
make_cgroups() {
  local id=$1 hierarchy node
  shift
  for hierarchy in $(hierarchies); do
    # Beside version 1, version 2 is only mounted to be looked at.
    if [ "$hierarchy" = /sys/fs/cgroup/unified ]; then continue; fi
    for node in "$@"; do
      make_cgroup "$hierarchy" "$CGROUP" "$id" "$node"
    done
  done
}

make_cgroup() {
  local at=$1 name file
  shift
  for name in "$@"; do
    if [ -e "$at/cgroup.subtree_control" ]; then
      for file in cpuset cpu io memory pids; do echo "+$file" >"$at/cgroup.subtree_control" 2>/dev/null || true; done
    fi
    mkdir -p "$at/$name"
    # An empty set of processors takes no process.
    for file in cpuset.cpus cpuset.mems; do
      if [ -e "$at/$file" ] && [ ! -e "$at/cgroup.controllers" ]; then cat "$at/$file" >"$at/$name/$file"; fi
    done
    at=$at/$name
  done
}

# The kernel lets go of a cgroup shortly after its last process has ended.
remove_cgroups() {
  local id=$1 hierarchy left try
  for try in {1..50}; do
    left=0
    for hierarchy in $(hierarchies); do
      [ -d "$hierarchy/$CGROUP/$id" ] || continue
      find "$hierarchy/$CGROUP/$id" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
    done
    if [ "$left" -eq 0 ]; then break; fi
    sleep 0.1
  done
  for hierarchy in $(hierarchies); do rmdir "$hierarchy/$CGROUP" 2>/dev/null || true; done
  if [ "$left" -ne 0 ]; then say "cgroups of the cluster $id are still in use: look at $CGROUP/$id below /sys/fs/cgroup"; fi
}
