# A PostgreSQL server for benchmarks, from Debian's packages, in memory, as a user of its own. Sourced after lib.sh, never run.
# shellcheck shell=bash disable=SC2154  # variables of lib.sh

# postgres_start: sets `server`, its first process, and MUSTER_DB, an empty database on it. Autovacuum is off: its time is no
# question's.
postgres_start() {
  local programs user=()
  programs=$(find /usr/lib/postgresql -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -1)
  [ -n "$programs" ] || { echo "PostgreSQL is not installed (Debian: postgresql)"; exit 1; }
  [ "$(id -u)" != 0 ] || user=(setpriv --reuid postgres --regid postgres --clear-groups)
  postgres=$(mktemp -d -p /dev/shm muster-pg-XXXXXX)
  [ "$(id -u)" != 0 ] || chown postgres: "$postgres"
  (cd "$postgres" && "${user[@]}" "$programs/initdb" --no-sync --no-instructions --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
    -U admin -D data >log)
  (cd "$postgres" && exec "${user[@]}" "$programs/postgres" -D data -k "$postgres" -c listen_addresses= -c fsync=off \
    -c shared_buffers=128MB -c autovacuum=off -c dynamic_shared_memory_type=mmap >>log 2>&1) &
  server=$!
  trap 'kill -QUIT "$server" 2>/dev/null; wait "$server" 2>/dev/null; rm -rf "$scratch" "$postgres"' EXIT
  psql=("$programs/psql" -h "$postgres" -U admin -q -v ON_ERROR_STOP=1)
  until "$programs/pg_isready" -q -h "$postgres"; do kill -0 "$server" || { cat "$postgres/log"; exit 1; }; sleep 0.1; done
  "${psql[@]}" -d postgres -c 'CREATE DATABASE muster'
  export MUSTER_DB="postgres://admin@/muster?host=$postgres&spool=$scratch/spool"
}

# postgres_copy FILE: all rows of an SQLite database of the same version.
postgres_copy() {
  python3 "$here/to_postgres.py" "$1" | "${psql[@]}" -d muster
  "${psql[@]}" -d muster -c 'VACUUM ANALYZE'
}
