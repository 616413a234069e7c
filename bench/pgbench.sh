#!/usr/bin/env bash
# pgbench on PostgreSQL and on percodb, in alternating runs on one machine: transactions per second,
# server CPU per transaction, and their ratios (medians).
#
#   bench/pgbench.sh            SCALE=10 SECONDS_PER_RUN=10 RUNS=3
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

scale=${SCALE:-10} seconds=${SECONDS_PER_RUN:-10} runs=${RUNS:-3}
pgbench="$pgbin/pgbench"

start_postgres
start_percodb
for port in "$pg_port" "$percodb_port"; do
  "$pgbench" -h 127.0.0.1 -p "$port" -U postgres -i -q -s "$scale" percodb >"$work/init.$port" 2>&1 || { cat "$work/init.$port"; exit 1; }
done
as_postgres "psql -h 127.0.0.1 -p $pg_port -U postgres -d percodb -qc 'checkpoint'"

# once PORT ARGS… : prints "tps cpu_us_per_txn"
once() {
  local port=$1 out before after tps n
  shift
  before=$(cpu_all "$port")
  out=$("$pgbench" -h 127.0.0.1 -p "$port" -U postgres -n -T "$seconds" "$@" percodb 2>&1) || { echo "$out" >&2; exit 1; }
  sleep 0.3 # PostgreSQL's backends have ended and are accounted to their parent
  after=$(cpu_all "$port")
  grep -q 'number of failed transactions: 0' <<<"$out" || { echo "$out" >&2; exit 1; }
  tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")
  n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  echo "$tps $(awk -v t=$((after - before)) -v n="$n" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.1f", t / hz * 1e6 / n}')"
}

cpu_all() {
  if [ "$1" = "$pg_port" ]; then cpu_ticks $(postgres_pids); else cpu_ticks "$percodb_pid"; fi
}

printf '%-34s %12s %12s %7s %9s %9s\n' "pgbench, scale $scale" "PostgreSQL" "percodb" "ratio" "PG CPU" "our CPU"
compare() { # compare NAME ARGS…
  local name=$1 pg_tps= our_tps= pg_cpu= our_cpu= tps cpu
  shift
  for _ in $(seq "$runs"); do
    read -r tps cpu < <(once "$pg_port" "$@"); pg_tps+="$tps"$'\n' pg_cpu+="$cpu"$'\n'
    read -r tps cpu < <(once "$percodb_port" "$@"); our_tps+="$tps"$'\n' our_cpu+="$cpu"$'\n'
  done
  awk -v name="$name" -v a="$(printf %s "$pg_tps" | median)" -v b="$(printf %s "$our_tps" | median)" \
    -v c="$(printf %s "$pg_cpu" | median)" -v d="$(printf %s "$our_cpu" | median)" \
    'BEGIN {printf "%-34s %10.0f/s %10.0f/s %6.2fx %6.0f us %6.0f us\n", name, a, b, b / a, c, d}'
}
compare "-S -M prepared -c 8 -j 2" -S -M prepared -c 8 -j 2
compare "-S -M simple -c 8 -j 2" -S -M simple -c 8 -j 2
compare "-N -M prepared -c 8 -j 2" -N -M prepared -c 8 -j 2
compare "TPC-B -M prepared -c 1" -M prepared -c 1
compare "TPC-B -M prepared -c 8 -j 2" -M prepared -c 8 -j 2
