#!/usr/bin/env bash
# What constraints, triggers, procedures and indexes of a schema cost, on PostgreSQL and percodb in alternating runs on one machine: medians and
# their ratio.
#
#   child       CLIENTS sessions insert children of one parent, a statement each
#   hot         the same, while HOT more sessions update another column of the parent
#   delete      parents without children are deleted; the child has an index on the foreign key
#   trigger     rows are inserted into a table with a BEFORE trigger in PL/pgSQL; untriggered: into one without
#   loop        a loop of LOOPS additions in PL/pgSQL
#   ginbuild    CREATE INDEX … USING gin (jsonb_path_ops) of DOCUMENTS documents
#   ginrare     documents that contain a rare member; ginboth: a rare and a frequent one; ginmany: three frequent ones, counted
#   plain       lookups by an index of a column; expression: by one of lower(column)
#   whole       rows of a table by its primary key; parts: of one with 16 partitions
#
# Rates are transactions per second, of loop and ginbuild seconds. No statement may fail. At the end no child may be without its parent.
#
#   bench/schema.sh             CLIENTS=8 HOT=2 SECONDS_PER_RUN=5 RUNS=3 LOOPS=10000000 DOCUMENTS=1000000 ROWS=300000 ONLY='^gin'
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

clients=${CLIENTS:-8} hot=${HOT:-2} seconds=${SECONDS_PER_RUN:-5} runs=${RUNS:-3}
loops=${LOOPS:-10000000} documents=${DOCUMENTS:-1000000} rows=${ROWS:-300000} only=${ONLY:-.}
workloads=
for workload in child hot delete untriggered trigger loop ginbuild ginrare ginboth ginmany plain expression whole parts; do
  ! grep -Eq -- "$only" <<<"$workload" || workloads+=" $workload"
done
wanted() { grep -Eq "$1" <<<"$workloads"; }

start_postgres
start_percodb
query() { psql -h 127.0.0.1 -p "$1" -U postgres -d percodb -v ON_ERROR_STOP=1 -XAtqc "$2"; }
gin="create index documents_gin on documents using gin (d jsonb_path_ops)"
for port in "$pg_port" "$percodb_port"; do
  query "$port" 'create table parents (id bigint primary key, n bigint not null default 0)'
  query "$port" 'create table children (id bigserial primary key, parent bigint not null references parents, note text)'
  query "$port" 'create index on children (parent)'
  ! wanted 'child|hot|delete' || query "$port" "insert into parents select i from generate_series(1, $rows) i"
  query "$port" 'create table untriggered (id bigserial primary key, a int, b text, at timestamptz)'
  query "$port" 'create table triggered (id bigserial primary key, a int, b text, at timestamptz)'
  query "$port" 'create function before_row() returns trigger language plpgsql as $$
    begin
      if new.a < 0 then raise exception $m$negative$m$; end if;
      new.b := lower(new.b); new.at := now();
      return new;
    end $$'
  query "$port" 'create trigger before_row before insert on triggered for each row execute function before_row()'
  query "$port" 'create function loops(n bigint) returns bigint language plpgsql as $$
    declare s bigint := 0;
    begin
      for i in 1..n loop s := s + i; end loop;
      return s;
    end $$'
  if wanted gin; then
    query "$port" "create table documents (id int primary key, d jsonb)"
    query "$port" "insert into documents select i, jsonb_build_object('id', i % ($documents / 20), 'kind', i % 10, 'state', i % 4, 'tags', jsonb_build_array(i % 97, 'tag' || i % 13), 'name', 'name ' || i)
      from generate_series(1, $documents) i"
    query "$port" "analyze documents"
  fi
  if wanted 'plain|expression'; then
    query "$port" "create table looked (id int primary key, a text, b text)"
    query "$port" "insert into looked select i, 'word' || i, 'Word' || i from generate_series(1, $rows) i"
    query "$port" 'create index on looked (a)'
    query "$port" 'create index on looked (lower(b))'
    query "$port" 'analyze looked'
  fi
  if wanted 'whole|parts'; then
    query "$port" 'create table whole (id int primary key, v text)'
    query "$port" 'create table parts (id int primary key, v text) partition by range (id)'
    for i in $(seq 0 15); do
      query "$port" "create table parts$i partition of parts for values from ($((i * rows / 16))) to ($(((i + 1) * rows / 16)))"
    done
    for table in whole parts; do query "$port" "insert into $table select i, 'value ' || i from generate_series(0, $rows - 1) i"; done
    query "$port" 'analyze whole'
    query "$port" 'analyze parts'
  fi
done
echo "insert into children (parent, note) values (1, 'a note');" >"$work/child.sql"
echo "update parents set n = n + 1 where id = 1;" >"$work/update.sql"
# Parents in steps that no two clients share; some of the statements find theirs deleted already.
printf '\\set k random(2, %d)\ndelete from parents where id = :k;\n' "$rows" >"$work/delete.sql"
for table in untriggered triggered; do echo "insert into $table (a, b) values (1, 'Some Text');" >"$work/$table.sql"; done
printf '\\set k random(0, %d)\nselect count(*) from documents where d @> jsonb_build_object($$id$$, :k::int);\n' $((documents / 20 - 1)) >"$work/ginrare.sql"
printf '\\set k random(0, %d)\nselect count(*) from documents where d @> jsonb_build_object($$id$$, :k::int, $$kind$$, :k::int %% 10);\n' $((documents / 20 - 1)) >"$work/ginboth.sql"
echo "select count(*) from documents where d @> '{\"kind\": 3, \"state\": 1, \"tags\": [\"tag5\"]}';" >"$work/ginmany.sql"
printf '\\set k random(1, %d)\nselect id from looked where a = $$word$$ || :k::text;\n' "$rows" >"$work/plain.sql"
printf '\\set k random(1, %d)\nselect id from looked where lower(b) = $$word$$ || :k::text;\n' "$rows" >"$work/expression.sql"
for table in whole parts; do printf '\\set k random(0, %d)\nselect v from %s where id = :k;\n' $((rows - 1)) "$table" >"$work/$table.sql"; done

# bench PORT SCRIPT CLIENTS: prints transactions per second
bench() {
  local out
  out=$("$pgbin/pgbench" -h 127.0.0.1 -p "$1" -U postgres -n -M prepared -c "$3" -j 2 -T "$seconds" --max-tries=1 -f "$2" percodb 2>&1) ||
    { echo "$out" >&2; exit 1; }
  grep -q 'number of failed transactions: 0' <<<"$out" || { echo "$out" >&2; exit 1; }
  sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out"
}

# took PORT STATEMENT: prints the seconds that a statement takes
took() {
  local begun
  begun=$(date +%s.%N)
  query "$1" "$2" >/dev/null
  awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN {printf "%.3f\n", b - a}'
}

# once PORT WORKLOAD: prints the rate of the measured sessions, or the seconds
once() {
  case $2 in
    child) bench "$1" "$work/child.sql" "$clients" ;;
    hot)
      bench "$1" "$work/update.sql" "$hot" >/dev/null &
      bench "$1" "$work/child.sql" "$clients"
      wait $! || exit 1
      ;;
    trigger) bench "$1" "$work/triggered.sql" "$clients" ;;
    loop) took "$1" "select loops($loops)" ;;
    ginbuild)
      query "$1" 'drop index if exists documents_gin' 2>/dev/null
      took "$1" "$gin"
      ;;
    gin*)
      query "$1" "${gin/index/index if not exists}" 2>/dev/null
      bench "$1" "$work/$2.sql" "$clients"
      ;;
    *) bench "$1" "$work/$2.sql" "$clients" ;;
  esac
}

printf '%-34s %12s %12s %7s\n' "$clients sessions" "PostgreSQL" "percodb" "ratio"
for workload in $workloads; do
  pg= ours= unit=/s
  case $workload in loop | ginbuild) unit=' s' ;; esac
  for _ in $(seq "$runs"); do
    pg+="$(once "$pg_port" "$workload")"$'\n'
    ours+="$(once "$percodb_port" "$workload")"$'\n'
  done
  awk -v name="$workload" -v unit="$unit" -v a="$(printf %s "$pg" | median)" -v b="$(printf %s "$ours" | median)" \
    'BEGIN {f = unit == "/s" ? "%.0f" : "%.2f"; printf "%-34s %12s %12s %6.2fx\n", name, sprintf(f, a) unit, sprintf(f, b) unit, b / a}'
done
for port in "$pg_port" "$percodb_port"; do
  orphans=$(query "$port" 'select count(*) from children c where not exists (select 1 from parents p where p.id = c.parent)')
  [ "$orphans" -eq 0 ] || { echo "port $port: $orphans children without a parent" >&2; exit 1; }
done
