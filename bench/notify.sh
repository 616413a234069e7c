#!/usr/bin/env bash
# LISTEN and NOTIFY on PostgreSQL and on percodb, alternating: the time from NOTIFY to one listener (median), and notifying
# transactions per second without and beside idle listeners of other channels, with and without a row that each transaction
# updates. One client receives all notifications and checks that none is missing.
#
#   bench/notify.sh             IDLE=1000 SENDERS=4 SECONDS_PER_RUN=5 RUNS=3
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

idle=${IDLE:-1000} senders=${SENDERS:-4} seconds=${SECONDS_PER_RUN:-5} runs=${RUNS:-3}
ulimit -n 65536 2>/dev/null || true
PG_OPTIONS="-c max_connections=$((idle + 100))" start_postgres
start_percodb --max-connections $((idle + 100))
go build -o "$work/notify" ./bench/notify

# once PORT IDLE FLAGS…: prints the figures of a run
once() {
  local port=$1 listeners=$2
  shift 2
  "$work/notify" --url "postgres://postgres@127.0.0.1:$port/percodb?sslmode=disable" --idle "$listeners" --senders "$senders" \
    --duration "${seconds}s" "$@"
}
figure() { sed -n "s/.*$1=\([0-9.]*\).*/\1/p" | median; }

echo "$senders sessions notify; $idle idle listeners; medians of $runs runs of $seconds s"
printf '%-28s %-11s %9s %9s %12s\n' "transaction" "server" "p50 µs" "p99 µs" "per second"
for flags in "" "--write"; do
  name=NOTIFY
  [ -z "$flags" ] || name="UPDATE; NOTIFY"
  for listeners in 0 "$idle"; do
    : >"$work/pg.out" && : >"$work/ours.out"
    for _ in $(seq "$runs"); do
      once "$pg_port" "$listeners" $flags >>"$work/pg.out"
      once "$percodb_port" "$listeners" $flags >>"$work/ours.out"
    done
    for server in pg ours; do
      tps=$(figure tps <"$work/$server.out")
      printf '%-28s %-11s %9.0f %9.0f %12.0f' "$name, $listeners idle" "$([ $server = pg ] && echo PostgreSQL || echo percodb)" \
        "$(figure p50_us <"$work/$server.out")" "$(figure p99_us <"$work/$server.out")" "$tps"
      if [ "$listeners" = 0 ]; then
        eval "none_$server=$tps"
        echo
      else
        none=none_$server
        awk -v a="$tps" -v b="${!none}" 'BEGIN {printf "   %.2f of without\n", a / b}'
      fi
    done
  done
done
