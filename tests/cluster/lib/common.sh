# shellcheck shell=bash
# What the scripts of this folder share: where things are, and how to say what is wrong. Sourced, never run.

CLUSTER_HOME=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CLUSTER_CACHE=${MUSTER_CLUSTER_CACHE:-${CI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster-ci}/cluster}
# The node address: reserved for documentation, so it is nobody's. It exists only inside the namespaces.
readonly CLUSTER_HOME CLUSTER_CACHE CLUSTER_ADDRESS=192.0.2.1

say() { printf 'cluster: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 1
}

# build_folder: the place of what was built from exactly these sources with this Go.
build_folder() {
  local key
  key=$(cd "$CLUSTER_HOME" && { go env GOVERSION && cat go.mod go.sum build main.go setup/*.go; } | sha256sum) || return
  printf '%s/%.16s\n' "$CLUSTER_CACHE" "$key"
}

# need_go: from 1.21 on, Go fetches by itself the version that go.mod wants, where it may.
need_go() {
  local wanted found
  wanted=$(sed -n 's/^go \([0-9.]*\)$/\1/p' "$CLUSTER_HOME/go.mod")
  command -v go >/dev/null || die "there is no Go: install Go $wanted or newer from https://go.dev/dl and put it on PATH"
  found=$(cd "$CLUSTER_HOME" && go env GOVERSION) || die "Go $wanted or newer is needed, but this one does not start (see above)"
  if [ "$(printf '%s\n' "$wanted" "${found#go}" | sort -V | head -n 1)" != "$wanted" ]; then
    die "Go $wanted or newer is needed, and this is ${found#go}: install one from https://go.dev/dl and put it on PATH"
  fi
}

# The plugins are in one of two places, Debian's or everyone else's.
cni_folder() {
  local folder
  for folder in /usr/lib/cni /opt/cni/bin; do
    if [ -x "$folder/bridge" ] && [ -x "$folder/host-local" ]; then
      echo "$folder"
      return
    fi
  done
  return 1
}
