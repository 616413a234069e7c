#!/usr/bin/env bash
# The TPC-E-like workload against servers that are killed: percodb on an empty directory, a tiny load, and
# customers without a pause while a process is killed with -9 and started again, ten times. Then the same
# with the driver killed too, and a run after it. What the server acknowledged must be there (C13, C14),
# and the database whole (C0 to C12).
#
#   PERCODB_TPCE_SPLIT=1     one process for each of an oracle, two stores and two SQL servers; the one that is
#                            killed is drawn each time (default: one process for all)
#   PERCODB_TPCE_KILLS=10    how often a process is killed
#   PERCODB_TPCE_SCALE=      flags of init, in place of --profile tiny
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
port=${PERCODB_E2E_PORT:-5545}
kills=${PERCODB_TPCE_KILLS:-10}
read -ra scale <<<"${PERCODB_TPCE_SCALE:---profile tiny}"
driver=
declare -A flags pid listens
if [ -n "${PERCODB_TPCE_SPLIT:-}" ]; then
  roles=(tso kv1 kv2 sql1 sql2)
  tso=127.0.0.1:$((port + 2))
  flags[tso]="--role=tso --rpc-listen $tso --data $work/tso" listens[tso]=$((port + 2))
  for n in 1 2; do
    flags[kv$n]="--role=kv --rpc-listen 127.0.0.1:$((port + 2 + n)) --data $work/kv$n --join $tso" listens[kv$n]=$((port + 2 + n))
    flags[sql$n]="--role=sql --listen 127.0.0.1:$((port + n - 1)) --join $tso" listens[sql$n]=$((port + n - 1))
  done
  urls=(--url "postgres://postgres@127.0.0.1:$port/percodb" --url "postgres://postgres@127.0.0.1:$((port + 1))/percodb")
else
  roles=(all)
  flags[all]="--listen 127.0.0.1:$port --data $work/data" listens[all]=$port
  urls=(--url "postgres://postgres@127.0.0.1:$port/percodb")
fi
trap '{ kill -9 "${pid[@]}" $driver; wait; } 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; for f in "$work"/*.log; do echo "--- $(basename "$f")"; tail -n 30 "$f"; done; exit 1; }
start() { # start ROLE, and wait until it listens
  local -a args
  read -ra args <<<"${flags[$1]}"
  "$work/percodb" start "${args[@]}" >>"$work/$1.log" 2>&1 &
  pid[$1]=$!
  for _ in $(seq 300); do
    (: >"/dev/tcp/127.0.0.1/${listens[$1]}") 2>/dev/null && return
    kill -0 "${pid[$1]}" 2>/dev/null || fail "$1 ended at start"
    sleep 0.1
  done
  fail "$1 does not listen"
}
kill9() { kill -9 "$1"; wait "$1" 2>/dev/null || true; }
drive() { # drive NAME FLAGS… : customers without a pause, in the background
  local name=$1
  shift
  "$work/percodb" bench tpce run "${urls[@]}" --pace max --price-period 10s --ramp 2s --interval 5s --maintain-every 1s \
    --journal "$work/journal" --json "$work/$name.json" "$@" >"$work/$name.log" 2>&1 &
  driver=$!
}
check() { # check NAME: the database is whole, and nothing that was acknowledged is lost
  "$work/percodb" bench tpce check "${urls[@]}" --journal "$work/journal" >"$work/check.log" 2>&1 || fail "$1: check"
  grep -q 'lost 0' "$work/check.log" || fail "$1: nothing was compared"
  echo "ok   $1: $(grep '^C13' "$work/check.log" | sed 's/.*(\(.*\)).*/\1/')"
}

go build -o "$work/percodb" ./cmd/percodb
for role in "${roles[@]}"; do start "$role"; done
"$work/percodb" bench tpce init "${urls[@]}" "${scale[@]}" >"$work/init.log" 2>&1 || fail "init"
"$work/percodb" bench tpce run "${urls[@]}" --dialect-probe >"$work/probe.log" || fail "statements are rejected"
echo "ok   init, all statements are accepted"

drive killed --duration 1h
for n in $(seq "$kills"); do
  sleep "$((2 + RANDOM % 3)).$((RANDOM % 10))"
  kill -0 "$driver" 2>/dev/null || fail "the run ended after $((n - 1)) kills"
  role=${roles[RANDOM % ${#roles[@]}]}
  kill9 "${pid[$role]}"
  start "$role"
done
sleep 5
kill -INT "$driver"
wait "$driver" || fail "the run that was interrupted"
grep -q 'it was interrupted' "$work/killed.json" || fail "no result of the run that was interrupted"
check "killed $kills times"

drive both --duration 1h
sleep 6
kill9 "$driver"
for role in "${roles[@]}"; do kill9 "${pid[$role]}"; done
for role in "${roles[@]}"; do start "$role"; done
check "all killed, the driver with them"

drive last --duration 5s
wait "$driver" || fail "the last run"
grep -q 'cleaned up' "$work/last.log" || fail "nothing was cleaned up"
check "cleaned up, and gone on"
