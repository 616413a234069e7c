#!/usr/bin/env bash
# What history costs the readers of the present: the same queries on percodb over tables that are fresh, and over tables that
# look the same but have UPDATES updates behind them, all of them younger than the history that is kept. Server CPU per query
# (medians of alternating runs), and their ratio.
#
#   bench/history.sh            UPDATES=1000000 SECONDS_PER_RUN=3 RUNS=5
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

updates=${UPDATES:-1000000} seconds=${SECONDS_PER_RUN:-3} runs=${RUNS:-5}
start_percodb
query() { psql -h 127.0.0.1 -p "$percodb_port" -U postgres -d percodb -XAtqc "$1"; }
bench() { "$pgbin/pgbench" -h 127.0.0.1 -p "$percodb_port" -U postgres -n -M prepared "$@" percodb 2>&1; }

# hot: 100 rows whose indexed counter grows. spread: 100 rows whose indexed number jumps about. queue: rows come at one end and
# are taken at the other.
for name in fresh old; do
  query "create table hot_$name (id int primary key, n bigint not null, filler text not null); create index on hot_$name (n);
         create table spread_$name (id int primary key, n bigint not null); create index on spread_$name (n);
         create table queue_$name (id bigint primary key, at bigint not null); create index on queue_$name (at, id)"
done
fill() { # fill NAME: the state that both end in
  query "insert into hot_$1 select i, $2 + i, 'filler' from generate_series(1, 100) i;
         insert into spread_$1 select i, i * 10007 from generate_series(1, 100) i;
         insert into queue_$1 select i, i from generate_series($2 + 1, $2 + 1000) i"
}
fill old 0
each=$((updates / 1000)) # transactions of 1,000 updates
cat >"$work/age.sql" <<SQL
\set shift random(1, 1000000)
BEGIN;
UPDATE hot_old SET n = n + 100;
UPDATE hot_old SET n = n + 100;
UPDATE hot_old SET n = n + 100;
UPDATE hot_old SET n = n + 100;
UPDATE spread_old SET n = (id * 7919 + :shift) % 1000000;
UPDATE spread_old SET n = (id * 7907 + :shift) % 1000000;
INSERT INTO queue_old SELECT id + 1000, at + 1000 FROM queue_old ORDER BY id LIMIT 200;
DELETE FROM queue_old WHERE id IN (SELECT id FROM queue_old ORDER BY id LIMIT 200);
COMMIT;
SQL
started=$SECONDS
out=$(bench -c 1 -t "$each" -f "$work/age.sql") || { echo "$out" >&2; exit 1; }
echo "$each transactions of 1,000 changed rows in $((SECONDS - started)) s; history is kept for ten minutes"
query "update spread_old set n = id * 10007"
query "insert into hot_fresh select * from hot_old; insert into spread_fresh select * from spread_old; insert into queue_fresh select * from queue_old"
query "analyze"

once() { # once FILE: server CPU in us per query
  local before after n out
  before=$(cpu_ticks "$percodb_pid")
  out=$(bench -c 4 -j 1 -T "$seconds" -f "$1") || { echo "$out" >&2; exit 1; }
  after=$(cpu_ticks "$percodb_pid")
  n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  awk -v t=$((after - before)) -v n="$n" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.2f\n", t / hz * 1e6 / n}'
}

printf '%-44s %12s %12s %7s\n' "server CPU per query" "fresh" "old" "ratio"
compare() { # compare NAME SQL, with TABLE_x for the tables
  local fresh= old=
  printf '%s;\n' "${2//_x/_fresh}" >"$work/fresh.sql"
  printf '%s;\n' "${2//_x/_old}" >"$work/old.sql"
  for _ in $(seq "$runs"); do
    fresh+="$(once "$work/fresh.sql")"$'\n'
    old+="$(once "$work/old.sql")"$'\n'
  done
  awk -v name="$1" -v a="$(printf %s "$fresh" | median)" -v b="$(printf %s "$old" | median)" \
    'BEGIN {printf "%-44s %9.1f us %9.1f us %6.2fx\n", name, a, b, b / a}'
}
compare "point read of a hot row" "SELECT n FROM hot_x WHERE id = 42"
compare "max of a growing column, by index" "SELECT max(n) FROM hot_x"
compare "min of a growing column, by index" "SELECT min(n) FROM hot_x"
compare "max of a column that jumps, by index" "SELECT max(n) FROM spread_x"
compare "min of a column that jumps, by index" "SELECT min(n) FROM spread_x"
compare "first ten of a queue" "SELECT id, at FROM queue_x ORDER BY at, id LIMIT 10"
compare "first ten of a queue, by primary key" "SELECT id, at FROM queue_x ORDER BY id LIMIT 10"
compare "all 100 hot rows" "SELECT id, n FROM hot_x"
