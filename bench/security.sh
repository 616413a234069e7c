#!/usr/bin/env bash
# What security costs, on PostgreSQL and on percodb in alternating runs: pgbench over TLS, new connections, a role with
# grants beside a superuser, memory of idle TLS connections, and percodb's cluster with TLS between its processes. Medians; on a
# shared machine ratios are more reliable than the figures.
#
#   bench/security.sh            PARTS="tls connect scram roles idle cluster" SCALE=10 SECONDS_PER_RUN=5 RUNS=3 IDLE=10000
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

parts=${PARTS:-tls connect scram roles idle cluster} scale=${SCALE:-10} seconds=${SECONDS_PER_RUN:-5} runs=${RUNS:-3} idle=${IDLE:-10000}
pgbench="$pgbin/pgbench" members=()
trap 'kill "${members[@]}" 2>/dev/null || true; cleanup' EXIT
ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"
export PGSSLMODE=disable
part() { [[ " $parts " == *" $1 "* ]]; }

go build -o "$work/percodb" ./cmd/percodb
go build -o "$work/idle" ./bench/security
"$work/percodb" cert --dir "$work/certs" --user postgres >/dev/null

# once PIDS PORT ARGS…: prints "tps cpu_us_per_txn"; PIDS is a command that prints the server's processes
once() {
  local pids=$1 port=$2 out before after tps n
  shift 2
  before=$(cpu_ticks $($pids))
  out=$("$pgbench" -h 127.0.0.1 -p "$port" -n -T "$seconds" "$@" percodb 2>&1) || { echo "$out" >&2; exit 1; }
  sleep 0.3 # PostgreSQL's backends have ended and are accounted to their parent
  after=$(cpu_ticks $($pids))
  grep -q 'number of failed transactions: 0' <<<"$out" || { echo "$out" >&2; exit 1; }
  tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out" | tail -n 1)
  n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  echo "$tps $(awk -v t=$((after - before)) -v n="$n" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.1f", t / hz * 1e6 / n}')"
}
ours() { echo "$percodb_pid"; }

# compare NAME LABEL COMMAND LABEL COMMAND: medians of alternating runs of two commands that print what once does, and the ratios
# of the second to the first
compare() {
  local name=$1 a_tps= a_cpu= b_tps= b_cpu= tps cpu
  for _ in $(seq "$runs"); do
    read -r tps cpu < <(eval "$3"); a_tps+="$tps"$'\n' a_cpu+="$cpu"$'\n'
    read -r tps cpu < <(eval "$5"); b_tps+="$tps"$'\n' b_cpu+="$cpu"$'\n'
  done
  awk -v name="$name" -v la="$2" -v lb="$4" -v a="$(printf %s "$a_tps" | median)" -v b="$(printf %s "$b_tps" | median)" \
    -v c="$(printf %s "$a_cpu" | median)" -v d="$(printf %s "$b_cpu" | median)" \
    'BEGIN {printf "%-38s %s %.0f/s %.0f us, %s %.0f/s %.0f us: %.2f x the rate, %.2f x the CPU\n", name, la, a, c, lb, b, d, b / a, d / c}'
}

fill() { # fill PORT: pgbench's tables
  "$pgbench" -h 127.0.0.1 -p "$1" -U postgres -i -q -s "$scale" percodb >"$work/init.$1" 2>&1 || { cat "$work/init.$1"; exit 1; }
}

if part tls || part connect || part scram || part roles || part idle; then
  mkdir "$work/pgcerts"
  cp "$work/certs/server.crt" "$work/certs/server.key" "$work/pgcerts"
  [ "$(id -u)" -ne 0 ] || chown -R postgres "$work/pgcerts"
  PG_OPTIONS="-c ssl=on -c ssl_cert_file=$work/pgcerts/server.crt -c ssl_key_file=$work/pgcerts/server.key -c max_connections=600" start_postgres
  printf 'host all bench all scram-sha-256\nhost all all all trust\n' >"$work/hba"
  start_percodb --max-connections $((idle + 100)) --hba "$work/hba" --tls-cert "$work/certs/server.crt" --tls-key "$work/certs/server.key"
  for port in "$pg_port" "$percodb_port"; do
    fill "$port"
    psql -h 127.0.0.1 -p "$port" -U postgres -d percodb -Xq <<SQL
create role bench login password 'bench';
create role plain login;
grant select, insert, update, delete on all tables in schema public to plain;
SQL
  done
  as_postgres "sed -i '1i host all bench 127.0.0.1/32 scram-sha-256' $work/pg/pg_hba.conf"
  psql -h 127.0.0.1 -p "$pg_port" -U postgres -d percodb -XAtqc 'select pg_reload_conf()' >/dev/null
  psql -h 127.0.0.1 -p "$pg_port" -U postgres -d percodb -qc 'checkpoint'
fi

if part tls; then
  for mode in prepared simple; do
    args="-U postgres -S -M $mode -c 8 -j 2"
    compare "-S -M $mode over TLS" PostgreSQL "PGSSLMODE=require once postgres_pids $pg_port $args" percodb "PGSSLMODE=require once ours $percodb_port $args"
    compare "-S -M $mode, percodb" "without TLS" "once ours $percodb_port $args" "with TLS" "PGSSLMODE=require once ours $percodb_port $args"
  done
fi
if part connect; then
  echo 'select 1' >"$work/one.sql"
  args="-U postgres -C -c 2 -f $work/one.sql"
  for mode in disable require; do
    compare "new connection, sslmode=$mode" PostgreSQL "PGSSLMODE=$mode once postgres_pids $pg_port $args" percodb "PGSSLMODE=$mode once ours $percodb_port $args"
  done
fi
if part scram; then
  echo 'select 1' >"$work/one.sql"
  args="-U bench -C -c 2 -f $work/one.sql"
  compare "new connection, SCRAM-SHA-256" PostgreSQL "PGPASSWORD=bench once postgres_pids $pg_port $args" percodb "PGPASSWORD=bench once ours $percodb_port $args"
fi
if part roles; then
  for args in "-S -M prepared -c 8 -j 2" "-N -M prepared -c 8 -j 2"; do
    compare "${args%% *}, percodb" superuser "once ours $percodb_port -U postgres $args" "role with grants" "once ours $percodb_port -U plain $args"
  done
fi
if part idle; then
  # memory_kb PID…: proportional set size, which counts memory that processes share once
  memory_kb() { cat $(printf '/proc/%s/smaps_rollup ' "$@") 2>/dev/null | awk '/^Pss:/ {t += $2} END {print t}'; }
  for server in PostgreSQL percodb; do
    if [ $server = percodb ]; then n=$idle port=$percodb_port pids=ours; else n=500 port=$pg_port pids=postgres_pids; fi
    before=$(memory_kb $($pids))
    mkfifo "$work/stop.$server"
    "$work/idle" --connections "$n" --url "postgres://postgres@127.0.0.1:$port/percodb?sslmode=require" <"$work/stop.$server" >"$work/idle.$server" &
    client=$!
    exec 8>"$work/stop.$server"
    while kill -0 "$client" 2>/dev/null && [ ! -s "$work/idle.$server" ]; do sleep 0.2; done
    sleep 3
    after=$(memory_kb $($pids))
    exec 8>&-
    wait "$client"
    echo "$server: $(cat "$work/idle.$server") over TLS, $(((after - before) / n)) kB each"
  done
fi

if part cluster; then
  plain_port=$((percodb_port + 1)) tls_port=$((percodb_port + 5))
  start_cluster "$plain_port"
  plain_members=("${members[@]}")
  start_cluster "$tls_port" "$work/certs"
  tls_members=("${members[@]}")
  members=("${plain_members[@]}" "${tls_members[@]}")
  without() { echo "${plain_members[@]}"; }
  with() { echo "${tls_members[@]}"; }
  fill "$plain_port"
  fill "$tls_port"
  for args in "-S -M prepared -c 8 -j 2" "-N -M prepared -c 8 -j 2"; do
    compare "cluster of three processes, ${args%% *}" "without TLS between them" "once without $plain_port -U postgres $args" "with TLS" "once with $tls_port -U postgres $args"
  done
fi
