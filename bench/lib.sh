# Shared by the scripts of this folder: a throwaway PostgreSQL cluster and a percodb server, both on
# loopback, both stopped and removed at exit. Source it, then call start_postgres and start_percodb.

pgbin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
[ -n "$pgbin" ] || { echo "PostgreSQL's server is needed for the comparison: apt-get install postgresql"; exit 1; }
work=$(mktemp -d)
chmod 755 "$work"
pg_port=${PG_PORT:-5643}
percodb_port=${PERCODB_PORT:-5653}
percodb_pid=

as_postgres() { # PostgreSQL refuses to run as root
  if [ "$(id -u)" -eq 0 ]; then su postgres -c "$1"; else sh -c "$1"; fi
}

stop_servers() {
  [ -z "$percodb_pid" ] || { kill "$percodb_pid" 2>/dev/null; wait "$percodb_pid" 2>/dev/null; } || true
  percodb_pid=
  [ ! -d "$work/pg" ] || as_postgres "$pgbin/pg_ctl -D $work/pg -m fast stop" >/dev/null 2>&1 || true
}
cleanup() {
  stop_servers
  rm -rf "$work"
}
trap cleanup EXIT

# Defaults, fsync on, but for two settings in PostgreSQL's favour: a larger cache than its 128 MB
# (PG_SHARED_BUFFERS; what it lacks, the operating system's has), and room in the log for a minute's writes
# without a checkpoint. percodb's default cache is an eighth of the memory, 2 GB at most.
start_postgres() {
  mkdir -p "$work/pg"
  [ "$(id -u)" -ne 0 ] || chown postgres "$work/pg"
  as_postgres "$pgbin/initdb -D $work/pg -U postgres -A trust --locale=C.UTF-8 -E UTF8" >/dev/null
  as_postgres "$pgbin/pg_ctl -D $work/pg -l $work/pg/log -w -o '-p $pg_port -c listen_addresses=127.0.0.1 -c unix_socket_directories=$work/pg -c shared_buffers=${PG_SHARED_BUFFERS:-256MB} -c max_wal_size=4GB ${PG_OPTIONS:-}' start" >/dev/null
  psql -h 127.0.0.1 -p "$pg_port" -U postgres -XAtqc 'create database percodb'
}

start_percodb() {
  [ -x "$work/percodb" ] || go build -o "$work/percodb" ./cmd/percodb
  "$work/percodb" start --listen "127.0.0.1:$percodb_port" --data "$work/data" "$@" >"$work/percodb.log" 2>&1 &
  percodb_pid=$!
  for _ in $(seq 100); do
    psql -h 127.0.0.1 -p "$percodb_port" -U postgres -d percodb -XAtqc 'select 1' >/dev/null 2>&1 && return
    sleep 0.1
  done
  echo "percodb did not start:"; cat "$work/percodb.log"; exit 1
}

# cpu_ticks PID… : user and system time of processes and their children that have ended, in ticks
cpu_ticks() { { cat $(printf '/proc/%s/stat ' "$@") 2>/dev/null || true; } | sed 's/.*) //' | awk '{t += $12 + $13 + $14 + $15} END {print t + 0}'; }
postgres_pids() { pgrep -P "$(head -n 1 "$work/pg/postmaster.pid")"; head -n 1 "$work/pg/postmaster.pid"; }
median() { sort -n | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
