#!/usr/bin/env bash
# A database with objects of every kind, dumped by pg_dump, is restored into an empty one: the dumps of both are equal. With PERCODB_E2E_PG
# (host=… port=… user=… of a PostgreSQL 15), the dump is also restored there. Needs psql and pg_dump 15 on the PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
port=${PERCODB_E2E_PORT:-5543}
pid=
trap 'kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; tail -n 30 "$work/log"; exit 1; }
here="host=127.0.0.1 port=$port user=postgres"
sql() { psql -d "$1" -v ON_ERROR_STOP=1 -XAtq "${@:2}"; }
dump() { pg_dump --no-sync -d "$1" | grep -v -e '^-- Dumped' -e '^.restrict' -e '^.unrestrict'; }

go build -o "$work/percodb" ./cmd/percodb
"$work/percodb" start --listen "127.0.0.1:$port" --data "$work/data" >"$work/log" 2>&1 &
pid=$!
for _ in $(seq 100); do
  sql "$here dbname=percodb" -c 'SELECT 1' >/dev/null 2>&1 && break
  sleep 0.1
done

sql "$here dbname=percodb" -c 'CREATE DATABASE original' -c 'CREATE DATABASE copy' -c 'CREATE ROLE dump_reader'
sql "$here dbname=original" -f test/e2e/dump.sql >/dev/null || fail "the schema"
dump "$here dbname=original" >"$work/original.sql" || fail "pg_dump"
sql "$here dbname=copy" -f "$work/original.sql" >/dev/null || fail "the dump is not restored"
dump "$here dbname=copy" >"$work/copy.sql" || fail "pg_dump of the copy"
diff "$work/original.sql" "$work/copy.sql" || fail "the dump of the copy differs"
echo "ok   restored into percodb, $(wc -l <"$work/original.sql") lines"

if [ -n "${PERCODB_E2E_PG:-}" ]; then
  sql "$PERCODB_E2E_PG dbname=postgres" -c 'DROP DATABASE IF EXISTS percodb_e2e_dump' -c 'CREATE DATABASE percodb_e2e_dump TEMPLATE template0' 2>/dev/null
  sql "$PERCODB_E2E_PG dbname=postgres" -c 'CREATE ROLE dump_reader' 2>/dev/null || true
  sql "$PERCODB_E2E_PG dbname=percodb_e2e_dump" -f "$work/original.sql" >/dev/null || fail "PostgreSQL does not restore the dump"
  dump "$PERCODB_E2E_PG dbname=percodb_e2e_dump" >"$work/other.sql"
  sql "$PERCODB_E2E_PG dbname=postgres" -c 'DROP DATABASE percodb_e2e_dump' -c 'DROP ROLE dump_reader'
  diff "$work/original.sql" "$work/other.sql" || fail "PostgreSQL's dump of the copy differs"
  echo "ok   restored into PostgreSQL"
fi

sql "$here dbname=percodb" -c 'DROP DATABASE copy' -c 'CREATE DATABASE copy'
pg_dumpall --no-sync -d "$here dbname=percodb" >"$work/all.sql" || fail "pg_dumpall"
grep -q 'CREATE ROLE dump_reader' "$work/all.sql" || fail "pg_dumpall without roles"
echo "ok   pg_dumpall"
