#!/usr/bin/env bash
# Many sessions increment one row in transaction blocks, on PostgreSQL (read committed) and on percodb
# (its default isolation) in alternating runs on one machine: commits per second and their ratio
# (medians). On both, no transaction may fail, and the row must have counted every commit.
#
#   bench/hotrow.sh             CLIENTS=64 SECONDS_PER_RUN=10 RUNS=3
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

clients=${CLIENTS:-64} seconds=${SECONDS_PER_RUN:-10} runs=${RUNS:-3}
pg_isolation="-c default_transaction_isolation=read\\ committed" # its default, whatever the environment says

start_postgres
start_percodb
query() { psql -h 127.0.0.1 -p "$1" -U postgres -d percodb -XAtqc "$2"; }
for port in "$pg_port" "$percodb_port"; do
  query "$port" 'create table counters (id int primary key, n bigint not null)'
  query "$port" 'insert into counters select i, 0 from generate_series(1, 1000) i'
done
printf 'BEGIN;\nUPDATE counters SET n = n + 1 WHERE id = 1;\nEND;\n' >"$work/increment.sql"

# once PORT MODE: prints commits per second, after it has made sure that all have been counted
once() {
  local port=$1 before out done counted
  before=$(query "$port" 'select n from counters where id = 1')
  [ "$port" != "$pg_port" ] || export PGOPTIONS=$pg_isolation
  out=$("$pgbin/pgbench" -h 127.0.0.1 -p "$port" -U postgres -n -M "$2" -c "$clients" -j 2 -T "$seconds" \
    --max-tries=1 -f "$work/increment.sql" percodb 2>&1) || { echo "$out" >&2; exit 1; }
  unset PGOPTIONS
  grep -q 'number of failed transactions: 0' <<<"$out" || { echo "$out" >&2; exit 1; }
  done=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  counted=$(($(query "$port" 'select n from counters where id = 1') - before))
  [ "$counted" -eq "$done" ] || { echo "port $port: $done commits, but the row counts $counted" >&2; exit 1; }
  sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out"
}

echo "$clients sessions increment one row; PostgreSQL: $(PGOPTIONS=$pg_isolation query "$pg_port" 'show transaction_isolation'), percodb: $(query "$percodb_port" 'show transaction_isolation')"
printf '%-34s %12s %12s %7s %7s %7s\n' "BEGIN; UPDATE … n + 1; END" "PostgreSQL" "percodb" "ratio" "failed" "lost"
for mode in simple prepared; do
  pg= ours=
  for _ in $(seq "$runs"); do
    tps=$(once "$pg_port" "$mode"); pg+="$tps"$'\n'
    tps=$(once "$percodb_port" "$mode"); ours+="$tps"$'\n'
  done
  awk -v name="-M $mode -c $clients -j 2" -v a="$(printf %s "$pg" | median)" -v b="$(printf %s "$ours" | median)" \
    'BEGIN {printf "%-34s %10.0f/s %10.0f/s %6.2fx %7d %7d\n", name, a, b, b / a, 0, 0}'
done
