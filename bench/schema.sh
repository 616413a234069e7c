#!/usr/bin/env bash
# What constraints of the schema cost, on PostgreSQL and percodb in alternating runs on one machine: rows per second and their ratio (medians).
#
#   child   CLIENTS sessions insert children of one parent, a statement each
#   hot     the same, while HOT more sessions update another column of the parent
#   delete  parents without children are deleted; the child has an index on the foreign key
#
# No statement may fail. At the end no child may be without its parent.
#
#   bench/schema.sh             CLIENTS=8 HOT=2 SECONDS_PER_RUN=5 RUNS=3
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

clients=${CLIENTS:-8} hot=${HOT:-2} seconds=${SECONDS_PER_RUN:-5} runs=${RUNS:-3}
start_postgres
start_percodb
query() { psql -h 127.0.0.1 -p "$1" -U postgres -d percodb -XAtqc "$2"; }
for port in "$pg_port" "$percodb_port"; do
  query "$port" 'create table parents (id bigint primary key, n bigint not null default 0)'
  query "$port" 'create table children (id bigserial primary key, parent bigint not null references parents, note text)'
  query "$port" 'create index on children (parent)'
  query "$port" 'insert into parents select i from generate_series(1, 300000) i'
done
echo "insert into children (parent, note) values (1, 'a note');" >"$work/child.sql"
echo "update parents set n = n + 1 where id = 1;" >"$work/update.sql"
# Parents in steps that no two clients share; some of the statements find theirs deleted already.
printf '\\set k random(2, 300000)\ndelete from parents where id = :k;\n' >"$work/delete.sql"

# bench PORT SCRIPT CLIENTS: prints transactions per second
bench() {
  local out
  out=$("$pgbin/pgbench" -h 127.0.0.1 -p "$1" -U postgres -n -M prepared -c "$3" -j 2 -T "$seconds" --max-tries=1 -f "$2" percodb 2>&1) ||
    { echo "$out" >&2; exit 1; }
  grep -q 'number of failed transactions: 0' <<<"$out" || { echo "$out" >&2; exit 1; }
  sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out"
}

# once PORT WORKLOAD: prints the rate of the measured sessions
once() {
  case $2 in
    child) bench "$1" "$work/child.sql" "$clients" ;;
    hot)
      bench "$1" "$work/update.sql" "$hot" >/dev/null &
      bench "$1" "$work/child.sql" "$clients"
      wait $! || exit 1
      ;;
    delete) bench "$1" "$work/delete.sql" "$clients" ;;
  esac
}

printf '%-34s %12s %12s %7s\n' "$clients sessions" "PostgreSQL" "percodb" "ratio"
for workload in child hot delete; do
  pg= ours=
  for _ in $(seq "$runs"); do
    tps=$(once "$pg_port" "$workload"); pg+="$tps"$'\n'
    tps=$(once "$percodb_port" "$workload"); ours+="$tps"$'\n'
  done
  awk -v name="$workload" -v a="$(printf %s "$pg" | median)" -v b="$(printf %s "$ours" | median)" \
    'BEGIN {printf "%-34s %10.0f/s %10.0f/s %6.2fx\n", name, a, b, b / a}'
done
for port in "$pg_port" "$percodb_port"; do
  orphans=$(query "$port" 'select count(*) from children c where not exists (select 1 from parents p where p.id = c.parent)')
  [ "$orphans" -eq 0 ] || { echo "port $port: $orphans children without a parent" >&2; exit 1; }
done
