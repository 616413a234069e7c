#!/usr/bin/env bash
# The TPC-E-like workload on PostgreSQL and on percodb, in alternating runs on one machine: medians of
# Trade-Results per second, server CPU and conflicts, the sizes of the data, and both databases checked
# before and after, with the journal.
#
#   bench/tpce.sh          RUNS=3 CUSTOMERS=1000 DURATION=1m RAMP=15s PACE=max OUT=DIR (for JSON and HTML)
#   MORE_CUSTOMERS=4000    then percodb with that many, for CPU per transaction at both scales
set -euo pipefail
cd "$(dirname "$0")/.."
export PG_SHARED_BUFFERS=${PG_SHARED_BUFFERS:-1GB}
. bench/lib.sh

runs=${RUNS:-3} customers=${CUSTOMERS:-1000} out=${OUT:-$work}
mkdir -p "$out"
drive=(--pace "${PACE:-max}" --ramp "${RAMP:-15s}" --duration "${DURATION:-1m}" --price-period "${PRICE_PERIOD:-60s}" --interval 5s)

start_postgres
start_percodb
tpce() { "$work/percodb" bench tpce "$@"; }
url() { echo "postgres://postgres@127.0.0.1:$1/percodb"; }
# value FILE KEY: a number of the result
value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*\$/\1/p" "$1" | head -n 1; }
# aborts FILE: attempts that the client repeated, for each Trade-Result
aborts() {
  awk '/"retries":/ {gsub(/[^0-9]/, ""); n += $0} /"trade-result": \{/ {tr = 1} tr && /"count":/ {gsub(/[^0-9]/, ""); count = $0; tr = 0}
    END {print count ? n / count : 0}' "$1"
}
size() { du -sk "$1" | cut -f 1; }
init() { # init NAME PORT CPU_OF FLAGS…
  local name=$1 port=$2 before after
  shift 2
  before=$(cpu "$port")
  tpce init --url "$(url "$port")" --trade-days 10 "$@" >"$out/$name.init" 2>&1 || { cat "$out/$name.init"; exit 1; }
  after=$(cpu "$port")
  echo "$name: loaded with $(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.1f", t / hz}') s of server CPU"
}
cpu() { if [ "$1" = "$pg_port" ]; then cpu_ticks $(postgres_pids); else cpu_ticks "$percodb_pid"; fi; }
check() { # check NAME PORT
  tpce check --url "$(url "$2")" ${3:+--journal "$3"} >"$out/$1.check" 2>&1 || { cat "$out/$1.check"; exit 1; }
}
run() { # run NAME PORT PID LABEL
  tpce run --url "$(url "$2")" "${drive[@]}" --server-pids "$3" --label "$4" --journal "$work/journal.$2" --json "$out/$1.json" >"$out/$1.txt" 2>&1 ||
    { cat "$out/$1.txt"; exit 1; }
}
pg_pid=$(head -n 1 "$work/pg/postmaster.pid")

init postgres "$pg_port" --customers "$customers"
init percodb "$percodb_port" --customers "$customers"
as_postgres "psql -h 127.0.0.1 -p $pg_port -U postgres -d percodb -qc checkpoint"
sleep "${SETTLE:-30}" # compactions of the load
pg_size=$(size "$work/pg/base") our_size=$(size "$work/data")
check postgres.loaded "$pg_port"
check percodb.loaded "$percodb_port"
for i in $(seq "$runs"); do
  run "postgres.$i" "$pg_port" "$pg_pid" "PostgreSQL 15"
  run "percodb.$i" "$percodb_port" "$percodb_pid" percodb
done
check postgres "$pg_port" "$work/journal.$pg_port"
check percodb "$percodb_port" "$work/journal.$percodb_port"
tpce compare "$out/postgres.$runs.json" "$out/percodb.$runs.json" --html "$out/compare.html" >"$out/compare.txt"

line() { # line NAME KEY FACTOR
  awk -v name="$1" -v f="$3" -v a="$(for i in $(seq "$runs"); do value "$out/postgres.$i.json" "$2"; done | median)" \
    -v b="$(for i in $(seq "$runs"); do value "$out/percodb.$i.json" "$2"; done | median)" \
    'BEGIN {printf "%-38s %12.3f %12.3f %8.2fx\n", name, a * f, b * f, b / a}'
}
printf '%-38s %12s %12s %9s\n' "$customers customers, $runs runs" PostgreSQL percodb ratio
line "Trade-Results per second" measured_tr 1
line "server CPU per Trade-Result, ms" per_tr_s 1000
line "server CPU per transaction, ms" per_tx_s 1000
line "Trade-Results per core-second" tr_per_core 1
awk -v a="$(for i in $(seq "$runs"); do aborts "$out/postgres.$i.json"; done | median)" -v b="$(for i in $(seq "$runs"); do aborts "$out/percodb.$i.json"; done | median)" \
  'BEGIN {printf "%-38s %12.4f %12.4f\n", "repeated attempts per Trade-Result", a, b}'
awk -v a="$pg_size" -v b="$our_size" 'BEGIN {printf "%-38s %12.0f %12.0f %8.2fx\n", "data after the load, MB", a / 1024, b / 1024, b / a}'
grep -h '^C13' "$out/postgres.check" "$out/percodb.check"

if [ -n "${MORE_CUSTOMERS:-}" ]; then
  tpce drop --url "$(url "$percodb_port")" >/dev/null
  kill "$percodb_pid" && wait "$percodb_pid" || true
  rm -rf "$work/data" "$work/journal.$percodb_port"
  start_percodb
  init "percodb.$MORE_CUSTOMERS" "$percodb_port" --customers "$MORE_CUSTOMERS"
  sleep "${SETTLE:-30}"
  for i in $(seq "$runs"); do run "more.$i" "$percodb_port" "$percodb_pid" "percodb, $MORE_CUSTOMERS customers"; done
  awk -v n="$MORE_CUSTOMERS" -v a="$(for i in $(seq "$runs"); do value "$out/percodb.$i.json" per_tx_s; done | median)" \
    -v b="$(for i in $(seq "$runs"); do value "$out/more.$i.json" per_tx_s; done | median)" \
    'BEGIN {printf "CPU per transaction at %d customers, ms %23.3f %8.2fx\n", n, b * 1000, b / a}'
fi
