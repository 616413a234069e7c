#!/usr/bin/env bash
# Writes PROFILE, by which the Go compiler optimises the server (go build -pgo=PROFILE): where its CPU time goes under pgbench and
# the queries of query.sh. go build uses cmd/percodb/default.pgo by itself, if there is one.
#
#   bench/profile.sh          PROFILE=percodb.pgo SECONDS_EACH=10
#
# The profiled binary is built without a profile, so that what an earlier one had inlined is seen.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=$PWD/${PROFILE:-percodb.pgo} seconds=${SECONDS_EACH:-10} rows=500000
. bench/lib.sh
. bench/queries.sh

admin=127.0.0.1:$((percodb_port + 1))
go build -trimpath -pgo=off -o "$work/percodb" ./cmd/percodb
start_percodb --admin-listen "$admin" --admin-pprof
on() { psql -h 127.0.0.1 -p "$percodb_port" -U postgres -d percodb -XAtq "$@"; }
bench() { pgbench -h 127.0.0.1 -p "$percodb_port" -U postgres -n -M prepared "$@" percodb; }

# during NAME COMMAND...: a profile of the server while the command runs, which takes so many seconds
during() {
  local name=$1 collector
  shift
  curl -fsS "http://$admin/debug/pprof/profile?seconds=$seconds" -o "$work/$name.pprof" &
  collector=$!
  "$@" >/dev/null 2>&1 || true
  wait "$collector"
}
queries() {
  while true; do
    for name in "${!text[@]}"; do
      [ -n "${undo[$name]+set}" ] || echo "${text[$name]};"
    done
    echo "begin; ${text["delete 10 %"]}; rollback; ${text["create index"]}; ${undo["create index"]};"
  done | timeout "$seconds" psql -h 127.0.0.1 -p "$percodb_port" -U postgres -d percodb -XAtq
}

on -v ON_ERROR_STOP=1 -f <(schema)
on -c analyze
pgbench -h 127.0.0.1 -p "$percodb_port" -U postgres -i -s 5 -q percodb 2>/dev/null
during select bench -S -c 4 -T "$seconds"
during tpcb bench -c 4 -T "$seconds"
seconds=$((3 * seconds))
during queries queries
go tool pprof -proto "$work"/*.pprof >"$work/merged" 2>/dev/null
mv "$work/merged" "$profile"
ls -l "$profile"
