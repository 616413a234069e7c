#!/usr/bin/env bash
# Two percodb binaries against each other on one machine: is the new one slower for anything? Both servers run at once, each
# with its own data, loaded alike; only one of them works at a time. Each line is a load, run ROUNDS times on each server, with
# the servers taking turns at being the first. Printed are the medians of the server's CPU per transaction, and the new binary's
# CPU and rate as ratios to the old one's: geometric means of the rounds' ratios, with 95 % confidence intervals (Student's t).
#
#   bench/binaries.sh OLD NEW      SCALE=10 SECONDS_PER_RUN=5 ROUNDS=10
#                                  TPCE_ROUNDS=6 TPCE_SECONDS=30 (0 rounds: none)
#
# A build of another commit: git worktree add /tmp/old COMMIT && (cd /tmp/old && go build -o /tmp/percodb-old ./cmd/percodb)
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -eq 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
declare -A binary=([old]=$(realpath "$1") [new]=$(realpath "$2")) port=([old]=${PERCODB_PORT:-5653} [new]=$((${PERCODB_PORT:-5653} + 1))) pid=()
. bench/lib.sh

scale=${SCALE:-10} seconds=${SECONDS_PER_RUN:-5} rounds=${ROUNDS:-10} tpce_rounds=${TPCE_ROUNDS:-6} tpce_seconds=${TPCE_SECONDS:-30}
stop_both() { for name in "${!pid[@]}"; do kill "${pid[$name]}" 2>/dev/null && wait "${pid[$name]}" 2>/dev/null || true; done; }
trap 'stop_both; cleanup' EXIT

url() { echo "postgres://postgres@127.0.0.1:${port[$1]}/percodb"; }
for name in old new; do
  mkdir "$work/$name"
  cp "${binary[$name]}" "$work/$name/percodb"
  "$work/$name/percodb" start --listen "127.0.0.1:${port[$name]}" --data "$work/$name/data" --cache-mb=1024 >"$work/$name/log" 2>&1 &
  pid[$name]=$!
  for _ in $(seq 100); do psql "$(url "$name")" -XAtqc 'select 1' >/dev/null 2>&1 && break; sleep 0.1; done
  "$pgbin/pgbench" -h 127.0.0.1 -p "${port[$name]}" -U postgres -i -q -s "$scale" percodb >"$work/$name/init" 2>&1 || { cat "$work/$name/init"; exit 1; }
done

# Each prints "CPU in us per transaction, transactions per second" of one run on a server.
run_pgbench() { # run_pgbench SERVER ARGS…
  local name=$1 before after out n tps
  shift
  before=$(cpu_ticks "${pid[$name]}")
  out=$("$pgbin/pgbench" -h 127.0.0.1 -p "${port[$name]}" -U postgres -n -T "$seconds" "$@" percodb 2>&1) || { echo "$out" >&2; exit 1; }
  after=$(cpu_ticks "${pid[$name]}")
  grep -q 'number of failed transactions: 0' <<<"$out" || { echo "$out" >&2; exit 1; }
  tps=$(sed -n 's/^tps = \([0-9.]*\).*/\1/p' <<<"$out")
  n=$(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' <<<"$out")
  awk -v t=$((after - before)) -v n="$n" -v tps="$tps" -v hz="$(getconf CLK_TCK)" 'BEGIN {print t / hz * 1e6 / n, tps}'
}
run_tpce() { # run_tpce SERVER
  local json=$work/$1/run.json
  "$work/new/percodb" bench tpce run --url "$(url "$1")" --pace max --ramp 5s --duration "${tpce_seconds}s" --price-period 5s --interval 5s \
    --server-pids "${pid[$1]}" --json "$json" >"$work/$1/run" 2>&1 || { cat "$work/$1/run" >&2; exit 1; }
  awk '/^ *"per_tx_s":/ {cpu = $2 * 1e6} /^ *"measured_tr":/ {rate = $2 + 0} END {print cpu, rate}' "$json"
}

printf '%-30s %10s %10s   %-26s %-26s\n' "server CPU per transaction" old new "CPU new/old [95 %]" "rate new/old [95 %]"
compare() { # compare NAME ROUNDS COMMAND ARGS…
  local title=$1 rounds=$2 command=$3 old new i
  shift 3
  for i in $(seq "$rounds"); do
    if [ $((i % 2)) = 1 ]; then old=$("$command" old "$@"); new=$("$command" new "$@"); else new=$("$command" new "$@"); old=$("$command" old "$@"); fi
    echo "$old $new"
  done | awk -v title="$title" '
    function interval(sum, squares, n,   mean, half) { # of logarithms
      mean = sum / n
      if (n < 2) return sprintf("%.3f", exp(mean))
      half = t[n - 1 < 30 ? n - 1 : 30] * sqrt((squares - n * mean * mean > 0 ? squares - n * mean * mean : 0) / (n - 1) / n)
      return sprintf("%.3f [%.3f, %.3f]", exp(mean), exp(mean - half), exp(mean + half))
    }
    function middle(v, n,   i, j, x) {
      for (i = 2; i <= n; i++) { x = v[i]; for (j = i - 1; j > 0 && v[j] > x; j--) v[j + 1] = v[j]; v[j + 1] = x }
      return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    BEGIN { split("12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262 2.228 2.201 2.179 2.160 2.145 2.131 2.120 2.110 2.101 2.093 2.086 2.080 2.074 2.069 2.064 2.060 2.056 2.052 2.048 2.045 2.042", t, " ") }
    { a[NR] = $1; b[NR] = $3; c = log($3 / $1); r = log($4 / $2); cs += c; cq += c * c; rs += r; rq += r * r }
    END { printf "%-30s %7.1f us %7.1f us   %-26s %-26s\n", title, middle(a, NR), middle(b, NR), interval(cs, cq, NR), interval(rs, rq, NR) }'
}
compare "-S -M prepared -c 8 -j 2" "$rounds" run_pgbench -S -M prepared -c 8 -j 2
compare "-S -M simple -c 8 -j 2" "$rounds" run_pgbench -S -M simple -c 8 -j 2
compare "-N -M prepared -c 8 -j 2" "$rounds" run_pgbench -N -M prepared -c 8 -j 2
compare "TPC-B -M prepared -c 1" "$rounds" run_pgbench -M prepared -c 1
compare "TPC-B -M prepared -c 8 -j 2" "$rounds" run_pgbench -M prepared -c 8 -j 2
if [ "$tpce_rounds" -gt 0 ]; then
  for name in old new; do
    "$work/new/percodb" bench tpce init --url "$(url "$name")" --trade-days 5 --customers 1000 >"$work/$name/init" 2>&1 || { cat "$work/$name/init"; exit 1; }
  done
  compare "brokerage, pace max" "$tpce_rounds" run_tpce
fi
