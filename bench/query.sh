#!/usr/bin/env bash
# Larger queries on PostgreSQL and on percodb, alternately in one session each, over ROWS rows. Printed are the medians of wall
# time and of the server's CPU time, and their ratios. PostgreSQL plans with its defaults: two workers beside the leader. The answers
# are compared.
#
#   bench/query.sh            ROWS=500000 RUNS=5 ONLY=REGEXP
#
# ONLY names the queries to run. A query is run REPEAT times (3) within a run, so that its CPU time is more than a few ticks.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

rows=${ROWS:-500000} runs=${RUNS:-5} repeat=${REPEAT:-3} only=${ONLY:-.}
. bench/queries.sh

start_postgres
start_percodb ${PERCODB_FLAGS:-}
on() { psql -h 127.0.0.1 -p "$1" -U postgres -d percodb -XAtq "${@:2}"; }

declare -A pg_wall pg_cpu our_wall our_cpu

# measure PORT NAME: prints "wall_ms cpu_ms", and leaves the answer in $work/answer.PORT
measure() {
  local port=$1 name=$2 n=$repeat before after
  [ -z "${undo[$name]+set}" ] || n=1
  { echo '\timing on'; for _ in $(seq "$n"); do echo "${text[$name]};"; done; } >"$work/script"
  before=$(ticks "$port")
  on "$port" -v ON_ERROR_STOP=1 -f "$work/script" >"$work/out" 2>&1 || { cat "$work/out" >&2; exit 1; }
  after=$(ticks "$port")
  grep -v '^Time: ' "$work/out" | sort -u >"$work/answer.$port" || true
  printf '%s %s\n' "$(sed -n 's/^Time: \([0-9.]*\) ms.*/\1/p' "$work/out" | median)" \
    "$(awk -v t=$((after - before)) -v n="$n" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.1f", 1000 * t / hz / n}')"
}
ticks() {
  if [ "$1" = "$percodb_port" ]; then cpu_ticks "$percodb_pid"; return; fi
  sleep 0.3 # the backend has ended and is accounted to its parent
  cpu_ticks $(postgres_pids)
}
both() { # both NAME: on both servers; the answers must be equal
  local name=$1 wall cpu
  [[ $name =~ $only ]] || return 0
  read -r wall cpu < <(measure "$pg_port" "$name"); pg_wall[$name]+="$wall"$'\n' pg_cpu[$name]+="$cpu"$'\n'
  read -r wall cpu < <(measure "$percodb_port" "$name"); our_wall[$name]+="$wall"$'\n' our_cpu[$name]+="$cpu"$'\n'
  cmp -s "$work/answer.$pg_port" "$work/answer.$percodb_port" || {
    echo "$name: the answers differ:"; diff "$work/answer.$pg_port" "$work/answer.$percodb_port" | head; exit 1; } >&2
  [ -z "${undo[$name]:-}" ] || for port in "$pg_port" "$percodb_port"; do on "$port" -c "${undo[$name]}"; done
}

for run in $(seq "$runs"); do
  for port in "$pg_port" "$percodb_port"; do
    on "$port" -c "drop table if exists orders, customers" 2>/dev/null
    on "$port" -v ON_ERROR_STOP=1 -f <(schema)
    on "$port" -c "vacuum analyze" 2>/dev/null
  done
  for name in "${queries[@]}"; do
    [ "$name" = "count after delete" ] || both "$name"
  done
  for name in "${changes[@]}"; do
    both "$name"
  done
  both "count after delete"
  echo "run $run of $runs" >&2
done

printf '%-20s %12s %12s %8s %12s %12s %8s\n' "$rows rows" "PostgreSQL" percodb wall "PostgreSQL" percodb CPU
for name in "${queries[@]}" "${changes[@]}"; do
  [ -n "${pg_wall[$name]:-}" ] || continue
  pw=$(printf '%s' "${pg_wall[$name]}" | median) ow=$(printf '%s' "${our_wall[$name]}" | median)
  pc=$(printf '%s' "${pg_cpu[$name]}" | median) oc=$(printf '%s' "${our_cpu[$name]}" | median)
  awk -v n="$name" -v pw="$pw" -v ow="$ow" -v pc="$pc" -v oc="$oc" \
    'BEGIN {printf "%-20s %9.1f ms %9.1f ms %8.2f %9.1f ms %9.1f ms %8s\n", n, pw, ow, ow / pw, pc, oc, (pc > 0 ? sprintf("%.2f", oc / pc) : "-")}'
done
