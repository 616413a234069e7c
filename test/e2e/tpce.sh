#!/usr/bin/env bash
# The TPC-E-like workload against a server that is killed: percodb on an empty directory, a tiny load, and
# customers without a pause while the server is killed with -9 and started again, ten times. Then the same
# with the driver killed too, and a driver that is interrupted. What the server acknowledged must be there
# (C13, C14), and the database whole (C0 to C12).
#
#   PERCODB_TPCE_KILLS=10    how often the server is killed
#   PERCODB_TPCE_PROFILE=    flags of init, in place of --profile tiny
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
port=${PERCODB_E2E_PORT:-5545}
kills=${PERCODB_TPCE_KILLS:-10}
read -ra scale <<<"${PERCODB_TPCE_PROFILE:---profile tiny}"
url="postgres://tester@127.0.0.1:$port/percodb"
pid=
driver=
trap 'kill -9 $pid $driver 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; for f in "$work"/*.log; do echo "--- $f"; tail -n 30 "$f"; done; exit 1; }
start() {
  "$work/percodb" start --listen "127.0.0.1:$port" --data "$work/data" >>"$work/server.log" 2>&1 &
  pid=$!
  for _ in $(seq 300); do
    (: >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && return
    kill -0 "$pid" 2>/dev/null || fail "the server ended at start"
    sleep 0.1
  done
  fail "the server does not answer"
}
kill9() { kill -9 "$1"; wait "$1" 2>/dev/null || true; }
drive() { # drive NAME FLAGS… : customers without a pause, in the background
  local name=$1
  shift
  "$work/percodb" bench tpce run --url "$url" --pace max --price-period 10s --ramp 2s --interval 5s --maintain-every 1s \
    --journal "$work/journal" --json "$work/$name.json" "$@" >"$work/$name.log" 2>&1 &
  driver=$!
}
check() { # check NAME: the database is whole, and nothing that was acknowledged is lost
  "$work/percodb" bench tpce check --url "$url" --journal "$work/journal" >"$work/check.log" 2>&1 || fail "$1: check"
  grep -q 'lost 0' "$work/check.log" || fail "$1: nothing was compared"
  echo "ok   $1: $(grep '^C13' "$work/check.log" | sed 's/.*(\(.*\)).*/\1/')"
}

go build -o "$work/percodb" ./cmd/percodb
start
"$work/percodb" bench tpce init --url "$url" "${scale[@]}" >"$work/init.log" 2>&1 || fail "init"
"$work/percodb" bench tpce run --url "$url" --dialect-probe >"$work/probe.log" || fail "statements are rejected"
echo "ok   init, all statements are accepted"

drive killed --duration 1h
for n in $(seq "$kills"); do
  sleep "$((2 + RANDOM % 3)).$((RANDOM % 10))"
  kill -0 "$driver" 2>/dev/null || fail "the run ended after $((n - 1)) kills"
  kill9 "$pid"
  start
done
sleep 5
kill -INT "$driver"
wait "$driver" || fail "the run that was interrupted"
grep -q 'it was interrupted' "$work/killed.json" || fail "no result of the run that was interrupted"
check "server killed $kills times"

drive both --duration 1h
sleep 6
kill9 "$driver"
kill9 "$pid"
start
check "server and driver killed"

drive last --duration 5s
wait "$driver" || fail "the last run"
grep -q 'cleaned up' "$work/last.log" || fail "nothing was cleaned up"
check "cleaned up, and gone on"
