#!/usr/bin/env bash
# Large transactions on PostgreSQL and on percodb, in alternating runs on one machine: each step is one transaction over ROWS rows,
# except the steps of pgbench -i that are several. Printed are the medians of wall and server CPU time, their ratios, and
# percodb's peak of resident memory beside its block cache.
#
#   bench/large.sh            ROWS=10000000 RUNS=3 CACHE_MB=256
#
# The peak is the largest difference, within the step, of resident memory and block cache, which are sampled together ten times
# a second. Both servers have a cache of CACHE_MB. TMPDIR must have room for about 3 kB per row.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

rows=${ROWS:-10000000} runs=${RUNS:-3} cache=${CACHE_MB:-256}
scale=$(((rows + 99999) / 100000))
pgbench="$pgbin/pgbench"
admin_port=${PERCODB_ADMIN_PORT:-$((percodb_port + 1))}
PG_SHARED_BUFFERS=${cache}MB
start_postgres
start_percodb --cache-mb "$cache" --admin-listen "127.0.0.1:$admin_port"

steps=()
declare -A pg_wall pg_cpu our_wall our_cpu our_peak
now() { date +%s.%N; }
cache_kb() { curl -s "http://127.0.0.1:$admin_port/metrics" | awk '/^percodb_storage_block_cache_bytes/ {t += $2} END {printf "%d\n", t / 1024}'; }
sample_beside_cache() { # samples until ended; the last line is the largest difference, in MB
  local rss beside peak=0
  while rss=$(awk '/VmRSS/ {print $2}' "/proc/$percodb_pid/status"); do
    beside=$((rss - $(cache_kb)))
    [ "$beside" -le "$peak" ] || { peak=$beside; echo $((peak / 1024)); }
    sleep 0.1
  done >"$work/beside"
}

on() { # on PORT COMMAND…: prints "wall_s cpu_s peak_mb"
  local port=$1 before after started ended sampler= peak=0
  shift
  if [ "$port" = "$pg_port" ]; then
    before=$(cpu_ticks $(postgres_pids))
  else
    before=$(cpu_ticks "$percodb_pid")
    sample_beside_cache & sampler=$!
  fi
  started=$(now)
  "$@" >"$work/out" 2>&1 || { [ -z "$sampler" ] || kill "$sampler"; cat "$work/out" >&2; exit 1; }
  ended=$(now)
  if [ "$port" = "$pg_port" ]; then
    sleep 0.3 # its backend has ended and is accounted to its parent
    after=$(cpu_ticks $(postgres_pids))
  else
    after=$(cpu_ticks "$percodb_pid")
    kill "$sampler"
    wait "$sampler" || true
    peak=$(tail -n 1 "$work/beside")
  fi
  awk -v a="$started" -v b="$ended" -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v p="$peak" \
    'BEGIN {printf "%.2f %.2f %d\n", b - a, t / hz, p}'
}
step() { # step NAME COMMAND…, with PORT for the port: on both
  local name=$1 wall cpu peak
  shift
  [ -n "${pg_wall[$name]:-}" ] || steps+=("$name")
  read -r wall cpu peak < <(on "$pg_port" "${@//PORT/$pg_port}"); pg_wall[$name]+="$wall"$'\n' pg_cpu[$name]+="$cpu"$'\n'
  read -r wall cpu peak < <(on "$percodb_port" "${@//PORT/$percodb_port}")
  our_wall[$name]+="$wall"$'\n' our_cpu[$name]+="$cpu"$'\n' our_peak[$name]+="$peak"$'\n'
}
on_both() {
  local port
  for port in "$pg_port" "$percodb_port"; do psql -h 127.0.0.1 -p "$port" -U postgres -d percodb -XAtqc "$1" >/dev/null 2>&1; done
}
sql() { step "$1" psql -h 127.0.0.1 -p PORT -U postgres -d percodb -XAtqc "$2"; }
init() { step "$1" "$pgbench" -h 127.0.0.1 -p PORT -U postgres -i -q -s "$scale" -I "$2" percodb; }

psql -h 127.0.0.1 -p "$pg_port" -U postgres -d percodb -XAtqc \
  "copy (select i, i % 1000, repeat('f', 84) from generate_series(1, $rows) i) to stdout" >"$work/rows.tsv"
for _ in $(seq "$runs"); do
  on_both "drop table if exists big, copied"
  init "pgbench -i: COPY after TRUNCATE" dtg
  init "pgbench -i: VACUUM ANALYZE" v
  init "pgbench -i: primary keys" p
  on_both "drop table pgbench_accounts, pgbench_branches, pgbench_tellers, pgbench_history;
          create table big (id int primary key, n int, filler char(84));
          create table copied (id int primary key, n int, filler char(84))"
  sql "COPY into a table with a key" "\\copy copied from '$work/rows.tsv'"
  sql "INSERT … SELECT" "insert into big select * from copied"
  sql "UPDATE of all rows" "update big set n = n + 1"
  sql "CREATE INDEX" "create index on big (n)"
  sql "DELETE of all rows" "delete from big"
done
printf '%-34s %9s %9s %7s %8s %8s %7s %9s\n' "$rows rows" PostgreSQL percodb ratio "PG CPU" "our CPU" ratio "memory"
for name in "${steps[@]}"; do
  awk -v name="$name" -v a="$(printf %s "${pg_wall[$name]}" | median)" -v b="$(printf %s "${our_wall[$name]}" | median)" \
    -v c="$(printf %s "${pg_cpu[$name]}" | median)" -v d="$(printf %s "${our_cpu[$name]}" | median)" \
    -v p="$(printf %s "${our_peak[$name]}" | sort -n | tail -n 1)" \
    'BEGIN {printf "%-34s %7.2f s %7.2f s %6.2fx %6.2f s %6.2f s %6.2fx %6d MB\n", name, a, b, b / a, c, d, d / c, p}'
done
