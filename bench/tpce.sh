#!/usr/bin/env bash
# The TPC-E-like workload on PostgreSQL and on percodb, in alternating runs on one machine: medians of
# Trade-Results per second, server CPU and repeated attempts, the sizes of the data, and both databases
# checked before and after, with the journal. Run by run the servers take turns at being the first, and a
# run begins when both are quiet, so that neither pays for what the other has put off.
#
#   bench/tpce.sh          RUNS=3 CUSTOMERS=1000 DURATION=1m PRICE_PERIOD=60s RAMP=$PRICE_PERIOD PACE=max
#                          OUT=DIR (for JSON and HTML), FOREIGN_KEYS=1 (the 49 foreign keys on both)
#   MORE_CUSTOMERS=4000    then both with that many, for the growth of CPU per transaction
#
# What a run says of its quality is printed with it. Exit code 1, after the table, if a transaction failed
# or ended with an outcome unknown, or a run is not valid for another reason than that it had no pace.
set -euo pipefail
cd "$(dirname "$0")/.."
export PG_SHARED_BUFFERS=${PG_SHARED_BUFFERS:-1GB}
. bench/lib.sh

runs=${RUNS:-3} customers=${CUSTOMERS:-1000} out=${OUT:-$work} bad=
period=${PRICE_PERIOD:-60s}
mkdir -p "$out"
drive=(--pace "${PACE:-max}" --ramp "${RAMP:-$period}" --duration "${DURATION:-1m}" --price-period "$period" --interval 5s)
declare -A port=([postgres]=$pg_port [percodb]=$percodb_port) label=([postgres]="PostgreSQL 15" [percodb]=percodb)

tpce() { "$work/percodb" bench tpce "$@"; }
url() { echo "postgres://postgres@127.0.0.1:${port[$1]}/percodb"; }
pid() { if [ "$1" = postgres ]; then head -n 1 "$work/pg/postmaster.pid"; else echo "$percodb_pid"; fi; }
cpu() { if [ "$1" = postgres ]; then cpu_ticks $(postgres_pids); else cpu_ticks "$percodb_pid"; fi; }
# size DIR LOGS: the kilobytes of a data directory, and those of its write-ahead logs, old ones included, which
# are as large for little data as for much
size() { echo "$(du -sk "$1" | cut -f 1) $(du -ck $2 | tail -n 1 | cut -f 1)"; }
# value FILE KEY: a number of the result
value() { sed -n "s/^ *\"$2\": \([0-9.e+-]*\),*\$/\1/p" "$1" | head -n 1; }
# repeats FILE: attempts that the client repeated, all of each transaction, for each Trade-Result
repeats() {
  awk '/"aborts": \{/ {inside = !/\}/; next} inside && /\}/ {inside = 0} inside {gsub(/.*: |,/, ""); n += $0}
    /"trade-result": \{/ {tr = 1} tr && /"count":/ {gsub(/[^0-9]/, ""); count = $0; tr = 0}
    END {print count ? n / count : 0}' "$1"
}

quiet() { # wait until neither server has used 5 % of a core for 2 s, at most 30 s
  local a b p q hz
  hz=$(getconf CLK_TCK)
  for _ in $(seq 15); do
    a=$(cpu postgres) b=$(cpu percodb)
    sleep 2
    p=$(($(cpu postgres) - a)) q=$(($(cpu percodb) - b))
    [ $((p * 10)) -ge "$hz" ] || [ $((q * 10)) -ge "$hz" ] || return 0
  done
  echo "not quiet after 30 s: in the last 2 s PostgreSQL used $p, percodb $q of $((2 * hz)) ticks"
}
init() { # init NAME SERVER FLAGS…
  local name=$1 server=$2 before after
  shift 2
  before=$(cpu "$server")
  tpce init --url "$(url "$server")" --trade-days 10 ${FOREIGN_KEYS:+--foreign-keys} "$@" >"$out/$name.init" 2>&1 || { cat "$out/$name.init"; exit 1; }
  after=$(cpu "$server")
  echo "$name: loaded with $(awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.1f", t / hz}') s of server CPU"
}
load() { # load PREFIX CUSTOMERS: both servers, and what they put off of it
  for server in postgres percodb; do init "$1$server" "$server" --customers "$2"; done
  as_postgres "psql -h 127.0.0.1 -p $pg_port -U postgres -d percodb -qc checkpoint"
  sleep "${SETTLE:-30}"
}
check() { # check NAME SERVER JOURNAL: the database is whole
  tpce check --url "$(url "$2")" ${3:+--journal "$3"} >"$out/$1.check" 2>&1 || { cat "$out/$1.check"; exit 1; }
}
run() { # run PREFIX SERVER NUMBER: one run, and what it says of its quality
  local name=$1$2.$3
  quiet
  tpce run --url "$(url "$2")" "${drive[@]}" --server-pids "$(pid "$2")" --label "${label[$2]}" \
    --journal "$work/journal.$1$2" --json "$out/$name.json" >"$out/$name.txt" 2>&1 || { cat "$out/$name.txt"; exit 1; }
  echo "$name: $(grep '^measured' "$out/$name.txt" | cut -d '|' -f 1)"
  # Without a pace no run is valid. Everything else that is said here is about the figures.
  if grep -E '^  because |^[A-Z][A-Za-z-]* failed: |with an outcome unknown' "$out/$name.txt" | grep -v 'because customers came without a pace$'; then
    bad="$bad $name"
  fi
}
turns() { # turns PREFIX: all runs, the first server changing
  for i in $(seq "$runs"); do
    if [ $((i % 2)) = 1 ]; then run "$1" postgres "$i"; run "$1" percodb "$i"; else run "$1" percodb "$i"; run "$1" postgres "$i"; fi
  done
  for server in postgres percodb; do check "$1$server" "$server" "$work/journal.$1$server"; done
}
# middle PREFIX SERVER KEY: the median over the runs
middle() { for i in $(seq "$runs"); do if [ "$3" = repeats ]; then repeats "$out/$1$2.$i.json"; else value "$out/$1$2.$i.json" "$3"; fi; done | median; }
line() { # line NAME KEY FACTOR PREFIX
  awk -v name="$1" -v f="$3" -v a="$(middle "${4:-}" postgres "$2")" -v b="$(middle "${4:-}" percodb "$2")" \
    'BEGIN {printf "%-38s %12.4f %12.4f", name, a * f, b * f; if (a) printf " %8.2fx", b / a; print ""}'
}
head_line() { printf '%-38s %12s %12s %9s\n' "$1 customers, $runs runs" PostgreSQL percodb ratio; }

start_postgres
start_percodb
load "" "$customers"
pg_size=$(size "$work/pg" "$work/pg/pg_wal") our_size=$(size "$work/data" "$work/data/*.log")
check postgres.loaded postgres
check percodb.loaded percodb
turns ""
tpce compare "$out/postgres.$runs.json" "$out/percodb.$runs.json" --html "$out/compare.html" >"$out/compare.txt"

head_line "$customers"
line "Trade-Results per second" measured_tr 1
line "server CPU per Trade-Result, ms" per_tr_s 1000
line "server CPU per transaction, ms" per_tx_s 1000
line "Trade-Results per core-second" tr_per_core 1
line "repeated attempts per Trade-Result" repeats 1
echo "$pg_size $our_size" | awk '{printf "%-38s %12.0f %12.0f %8.2fx\n", "data after the load, MB", ($1 - $2) / 1024, ($3 - $4) / 1024, ($3 - $4) / ($1 - $2)
  printf "%-38s %12.0f %12.0f\n", "write-ahead logs then, MB", $2 / 1024, $4 / 1024}'
grep -h '^C1[34]' "$out/postgres.check" "$out/percodb.check"

if [ -n "${MORE_CUSTOMERS:-}" ]; then
  stop_servers
  rm -rf "$work/data" "$work/pg"
  start_postgres
  start_percodb
  load more. "$MORE_CUSTOMERS"
  turns more.
  head_line "$MORE_CUSTOMERS"
  line "Trade-Results per second" measured_tr 1 more.
  line "server CPU per transaction, ms" per_tx_s 1000 more.
  awk -v n="x CPU per transaction at $customers" -v a="$(middle more. postgres per_tx_s)" -v b="$(middle more. percodb per_tx_s)" \
    -v a1="$(middle "" postgres per_tx_s)" -v b1="$(middle "" percodb per_tx_s)" 'BEGIN {printf "%-38s %12.2f %12.2f\n", n, a / a1, b / b1}'
  grep -h '^C1[34]' "$out/more.postgres.check" "$out/more.percodb.check"
fi
[ -z "$bad" ] || { echo "NOT TO BE RELIED ON, for what these runs say above:$bad"; exit 1; }
