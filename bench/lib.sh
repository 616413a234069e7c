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
  await_percodb "$percodb_port" || { echo "percodb did not start:"; cat "$work/percodb.log"; exit 1; }
}

# start_cluster PORT [CERTS [SQL]]: an oracle, a store and SQL processes (1) on loopback. The first one listens on PORT, the next on
# PORT + 3 and so on. CERTS is empty or the directory of the processes' certificates. Their ids are in members, which the caller kills.
start_cluster() {
  local port=$1 certs=${2:-} number=${3:-1} role args
  members=()
  for role in tso kv $(seq "$number"); do
    case $role in
      tso) args=(--rpc-listen "127.0.0.1:$((port + 1))" --data "$work/$port-tso") ;;
      kv) args=(--rpc-listen "127.0.0.1:$((port + 2))" --data "$work/$port-kv" --join "127.0.0.1:$((port + 1))") ;;
      *) args=(--listen "127.0.0.1:$((port + 3 * (role - 1)))" --join "127.0.0.1:$((port + 1))") role=sql ;;
    esac
    [ -z "$certs" ] || args+=(--cluster-tls-cert "$certs/$role.crt" --cluster-tls-key "$certs/$role.key" --cluster-tls-ca "$certs/ca.crt")
    "$work/percodb" start --role="$role" --memory 1GB "${args[@]}" >"$work/$port-$role-${#members[@]}.log" 2>&1 &
    members+=($!)
  done
  for role in $(seq 0 3 $((3 * (number - 1)))); do
    await_percodb $((port + role)) || { echo "the cluster did not start:"; cat "$work/$port"-*.log; exit 1; }
  done
}

# await_percodb PORT: until a server answers there, 30 s at most
await_percodb() {
  for _ in $(seq 300); do
    psql -h 127.0.0.1 -p "$1" -U postgres -d percodb -XAtqc 'select 1' >/dev/null 2>&1 && return
    sleep 0.1
  done
  return 1
}

# cpu_ticks PID… : user and system time of processes and their children that have ended, in ticks
cpu_ticks() { { cat $(printf '/proc/%s/stat ' "$@") 2>/dev/null || true; } | sed 's/.*) //' | awk '{t += $12 + $13 + $14 + $15} END {print t + 0}'; }
postgres_pids() { pgrep -P "$(head -n 1 "$work/pg/postmaster.pid")"; head -n 1 "$work/pg/postmaster.pid"; }
median() { sort -n | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
