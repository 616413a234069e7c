#!/usr/bin/env bash
# What a brokerage at full speed leaves behind for the readers of the present. One percodb takes the TPC-E-like load for DURATION;
# another one then gets the same rows, fresh. Printed are the first one's CPU per Trade-Result, minute by minute, and for queries
# over both the server's CPU per query (medians of alternating runs), and their ratio.
#
#   bench/aged.sh            DURATION=30m CUSTOMERS=1000 SECONDS_PER_RUN=3 RUNS=5
#   PROFILES=DIR             and the first server's CPU profiles of its third minute and of the end of the run
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

duration=${DURATION:-30m} customers=${CUSTOMERS:-1000} seconds=${SECONDS_PER_RUN:-3} runs=${RUNS:-5}
aged_port=$percodb_port fresh_port=$((percodb_port + 1)) admin_port=$((percodb_port + 2)) fresh_pid=
trap '[ -z "$fresh_pid" ] || { kill "$fresh_pid" && wait "$fresh_pid"; } 2>/dev/null || true; cleanup' EXIT
url() { echo "postgres://postgres@127.0.0.1:$1/percodb"; }
tpce() { "$work/percodb" bench tpce "$@"; }
ask() { psql "$(url "$1")" -XAtqc "$2"; }

start_percodb --admin-listen "127.0.0.1:$admin_port" --admin-pprof
tpce init --url "$(url "$aged_port")" --trade-days 10 --customers "$customers" >"$work/init" 2>&1 || { cat "$work/init"; exit 1; }
tpce run --url "$(url "$aged_port")" --pace max --ramp 10s --duration "$duration" --price-period 60s --interval 60s \
  --server-pids "$percodb_pid" --json "$work/run.json" >"$work/run" 2>&1 &
driver=$!

profile() { # profile NAME
  [ -n "${PROFILES:-}" ] && curl -sf "http://127.0.0.1:$admin_port/debug/pprof/profile?seconds=20" >"$PROFILES/$1.pprof"
}
completed() { ask "$aged_port" "select sum(b_num_trades) from broker"; }
printf '%8s %22s %26s\n' minute "Trade-Results per s" "CPU per Trade-Result, ms"
minute=0 cpu=$(cpu_ticks "$percodb_pid") done=$(completed)
while sleep 60 && kill -0 "$driver" 2>/dev/null; do
  minute=$((minute + 1)) next_cpu=$(cpu_ticks "$percodb_pid") next_done=$(completed)
  awk -v m="$minute" -v t=$((next_cpu - cpu)) -v n=$((next_done - done)) -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%8d %22.1f %26.3f\n", m, n / 60, n ? t / hz * 1000 / n : 0}'
  cpu=$next_cpu done=$next_done
  [ "$minute" != 3 ] || profile early &
done
wait "$driver" || { cat "$work/run"; exit 1; }
grep '^measured' "$work/run"

"$work/percodb" start --listen "127.0.0.1:$fresh_port" --data "$work/fresh" >"$work/fresh.log" 2>&1 &
fresh_pid=$!
for _ in $(seq 100); do ask "$fresh_port" 'select 1' >/dev/null 2>&1 && break; sleep 0.1; done
tpce init --url "$(url "$fresh_port")" --trade-days 5 --customers 1000 >"$work/init" 2>&1 || { cat "$work/init"; exit 1; }
for table in broker last_trade trade trade_request holding holding_summary customer_account; do
  ask "$fresh_port" "truncate $table"
  psql "$(url "$aged_port")" -XAtqc "copy $table to stdout" | psql "$(url "$fresh_port")" -XAtqc "copy $table from stdin"
done
for port in "$aged_port" "$fresh_port"; do ask "$port" analyze; done

once() { # once PORT PID: server CPU in us per query of $work/query.sql
  local before after n out
  before=$(cpu_ticks "$2")
  out=$("$pgbin/pgbench" -h 127.0.0.1 -p "$1" -U postgres -n -M prepared -c 4 -j 1 -T "$seconds" -f "$work/query.sql" percodb 2>&1) || { echo "$out" >&2; exit 1; }
  after=$(cpu_ticks "$2")
  n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  awk -v t=$((after - before)) -v n="$n" -v hz="$(getconf CLK_TCK)" 'BEGIN {printf "%.2f\n", t / hz * 1e6 / n}'
}
printf '%-44s %12s %12s %7s\n' "server CPU per query" "fresh" "aged" "ratio"
compare() { # compare NAME SQL
  local fresh= aged=
  echo "$2;" >"$work/query.sql"
  for _ in $(seq "$runs"); do
    fresh+="$(once "$fresh_port" "$fresh_pid")"$'\n'
    aged+="$(once "$aged_port" "$percodb_pid")"$'\n'
  done
  awk -v name="$1" -v a="$(printf %s "$fresh" | median)" -v b="$(printf %s "$aged" | median)" 'BEGIN {printf "%-44s %9.1f us %9.1f us %6.2fx\n", name, a, b, b / a}'
}
symbol=$(ask "$aged_port" "select tr_s_symb from trade_request group by 1 order by count(*) desc, 1 limit 1")
account=$(ask "$aged_port" "select t_ca_id from trade where t_id > (select max(t_id) - 100000 from trade) group by 1 order by count(*) desc, 1 limit 1")
broker=$(ask "$aged_port" "select ca_b_id from customer_account where ca_id = $account")
trade=$(ask "$aged_port" "select max(t_id) from trade where t_ca_id = $account")
compare "point read: a broker, updated by every trade" "SELECT b_num_trades, b_comm_total FROM broker WHERE b_id = $broker"
compare "point read: a security's last trade" "SELECT lt_price, lt_vol FROM last_trade WHERE lt_s_symb = '$symbol'"
compare "point read: a new trade" "SELECT t_st_id, t_trade_price FROM trade WHERE t_id = $trade"
compare "index end: the newest trade" "SELECT max(t_id) FROM trade"
compare "index end: an account's ten newest trades" "SELECT t_id, t_dts FROM trade WHERE t_ca_id = $account ORDER BY t_dts DESC LIMIT 10"
compare "index end: a security's ten newest trades" "SELECT t_id, t_dts FROM trade WHERE t_s_symb = '$symbol' ORDER BY t_dts DESC LIMIT 10"
compare "queue: the ten oldest limit orders" "SELECT tr_t_id FROM trade_request ORDER BY tr_t_id LIMIT 10"
compare "queue: a security's limit orders" "SELECT tr_t_id, tr_bid_price FROM trade_request WHERE tr_s_symb = '$symbol' ORDER BY tr_s_symb, tr_tt_id, tr_bid_price LIMIT 10"
compare "an account's holdings" "SELECT h_t_id, h_qty FROM holding WHERE h_ca_id = $account ORDER BY h_s_symb, h_dts LIMIT 10"
[ -z "${PROFILES:-}" ] || { tpce run --url "$(url "$aged_port")" --pace max --ramp 5s --duration 30s --price-period 60s >/dev/null 2>&1 & profile late; wait $!; }
