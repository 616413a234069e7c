#!/usr/bin/env bash
# Observers, and what PostgreSQL's users build in their place (trigger, job table, NOTIFY, workers with FOR UPDATE SKIP LOCKED), in one
# run: latency, throughput, the writer's CPU time; idle observers and a backlog of a million changes on percodb. Then, on a cluster
# of an oracle, a store and two SQL processes, the latency from changes on one SQL process to a client of the other.
#
#   bench/observers.sh [FLAGS of percodb bench observers]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

start_postgres
start_percodb
"$work/percodb" bench observers --url "postgres://postgres@127.0.0.1:$percodb_port/percodb" --pid "$percodb_pid" \
  --postgres-url "postgres://postgres@127.0.0.1:$pg_port/percodb" --postgres-pid "@$work/pg/postmaster.pid" "$@"

stop_servers
trap 'kill "${members[@]}" 2>/dev/null; wait "${members[@]}" 2>/dev/null; cleanup' EXIT
start_cluster "$percodb_port" "" 2
"$work/percodb" bench observers --url "postgres://postgres@127.0.0.1:$percodb_port/percodb" \
  --writer-url "postgres://postgres@127.0.0.1:$((percodb_port + 3))/percodb"
