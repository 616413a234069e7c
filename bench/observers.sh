#!/usr/bin/env bash
# Observers, and what PostgreSQL's users build in their place (trigger, job table, NOTIFY, workers with FOR UPDATE SKIP LOCKED), in one
# run: latency, throughput, the writer's CPU time; idle observers and a backlog of a million changes on percodb.
#
#   bench/observers.sh [FLAGS of percodb bench observers]
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/lib.sh

start_postgres
start_percodb
"$work/percodb" bench observers --url "postgres://postgres@127.0.0.1:$percodb_port/percodb" --pid "$percodb_pid" \
  --postgres-url "postgres://postgres@127.0.0.1:$pg_port/percodb" --postgres-pid "@$work/pg/postmaster.pid" "$@"
