#!/usr/bin/env bash
# End to end, as a user would: builds percodb, starts it on an empty directory, talks to it with real
# psql and pgbench, kills it with -9 and looks again. Needs psql and pgbench on the PATH.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
port=${PERCODB_E2E_PORT:-5543}
admin=$((port + 1))
pid=
trap 'kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; echo "--- server log"; tail -n 30 "$work/log"; exit 1; }
sql() { psql -h 127.0.0.1 -p "$port" -U postgres -d percodb -v ON_ERROR_STOP=1 -XAtq "$@"; }
expect() { # expect NAME WANT COMMAND…
  local name=$1 want=$2 got
  shift 2
  got=$("$@" 2>&1) || fail "$name: $got"
  [ "$got" = "$want" ] || fail "$name: want «$want», got «$got»"
  echo "ok   $name"
}
start() {
  "$work/percodb" start --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$admin" --data "$work/data" >>"$work/log" 2>&1 &
  pid=$!
  for _ in $(seq 100); do
    psql -h 127.0.0.1 -p "$port" -U postgres -d percodb -XAtqc 'select 1' >/dev/null 2>&1 && return
    kill -0 "$pid" 2>/dev/null || fail "the server ended at start"
    sleep 0.1
  done
  fail "the server does not answer"
}
kill9() { kill -9 "$pid"; wait "$pid" 2>/dev/null || true; }
bench() { # bench NAME ARGS… : pgbench must finish without a failed transaction
  local name=$1 out
  shift
  out=$(pgbench -h 127.0.0.1 -p "$port" -U postgres "$@" percodb 2>&1) || fail "$name: $out"
  grep -q 'number of failed transactions: 0' <<<"$out" || fail "$name: $out"
  echo "ok   $name: $(grep -o 'tps = [0-9.]*' <<<"$out" | head -n 1)"
}

go build -o "$work/percodb" ./cmd/percodb
start
grep -q 'psql' "$work/log" || fail "no psql command printed at start"
echo "ok   start"

sql -c 'create table account (id int primary key, owner text not null, balance numeric(12,2) check (balance >= 0))' \
    -c "insert into account values (1, 'ann', 10.5), (2, 'bob', 20)" >/dev/null
expect "select" $'1|ann|10.50\n2|bob|20.00' sql -c 'select * from account order by id'
expect "meta \\dt" 'public|account|table|postgres' sql -c '\dt'
sql -c '\d account' >"$work/out" && grep -q 'balance' "$work/out" || fail "\\d account"

# Every command of psql that describes something, with and without + and S, as a superuser and as an ordinary role. Two read what only
# superusers may: \dRs+ the connection strings of subscriptions, as in PostgreSQL.
sql -c 'create role ordinary login' -c 'create view rich as select * from account' -c 'create sequence numbers' -c "create type mood as enum ('ok')" \
    -c 'grant select on account to ordinary' >/dev/null
describe() { # describe ROLE
  local commands='' command more
  for command in d da dA dAc dAf dAo dAp db dc dC dd dD ddp dE des det deu dew df dfa dfn dfp dft dfw dF dFd dFp dFt dg di dl dL dm dn do dO dp \
    dP dPi dPt drds dRp dRs ds dt dT du dv dx dX dy l z 'd account' 'd rich' 'd numbers' 'd account_pkey' 'd pg_class' 'dT mood' 'sv rich'; do
    for more in '' + S S+; do
      case $command$more in dA*S* | sv*S* | 'dRs+' | 'dRsS+') continue ;; esac
      commands+="\\\\${command%% *}$more"
      [ "$command" = "${command#* }" ] || commands+=" ${command#* }"
      commands+='\n'
    done
  done
  printf "$commands" | psql -h 127.0.0.1 -p "$port" -U "$1" -d percodb -X 2>&1 >/dev/null | grep ERROR || true
}
for role in postgres ordinary; do
  out=$(describe $role)
  [ -z "$out" ] || fail "psql's commands as $role: $out"
  echo "ok   psql's commands as $role"
done
sql -c 'drop view rich' -c 'drop sequence numbers' -c 'drop type mood' -c 'revoke all on account from ordinary' -c 'drop role ordinary' >/dev/null
echo "ok   meta \\d"
expect "rollback" '2' sql -c 'begin; delete from account; rollback' -c 'select count(*) from account'
if sql -c "insert into account values (1, 'eve', 1)" >"$work/out" 2>&1; then fail "duplicate key accepted"; fi
grep -q 'duplicate key value violates unique constraint "account_pkey"' "$work/out" || fail "duplicate: $(cat "$work/out")"
echo "ok   unique violation"
printf '3\tcy\t30\n4\tdi\t\\N\n' | sql -c 'copy account from stdin'
expect "copy" $'3,cy,30.00\n4,di,' sql -c 'copy (select * from account where id > 2 order by id) to stdout with csv'

kill9
start
expect "rows after kill -9" '4' sql -c 'select count(*) from account'
curl -fsS "http://127.0.0.1:$admin/healthz" >/dev/null || fail "healthz"
curl -fsS -o "$work/metrics" "http://127.0.0.1:$admin/metrics" && grep -q '^percodb_' "$work/metrics" || fail "metrics"
echo "ok   admin endpoint"

if "$work/percodb" start --listen "127.0.0.1:$((port + 2))" --data "$work/data" >"$work/out" 2>&1; then
  fail "two servers on one directory"
fi
[ "$(wc -l <"$work/out")" -eq 1 ] || fail "two servers on one directory: $(cat "$work/out")"
echo "ok   second server refused: $(cat "$work/out")"

pgbench -h 127.0.0.1 -p "$port" -U postgres -i -s 1 -q percodb >"$work/out" 2>&1 || fail "pgbench -i: $(cat "$work/out")"
echo "ok   pgbench -i"
bench "pgbench -S prepared" -n -S -M prepared -c 8 -j 2 -T 3
bench "pgbench -S simple" -n -S -M simple -c 8 -j 2 -T 3
bench "pgbench -N prepared" -n -N -M prepared -c 8 -j 2 -T 3
bench "pgbench TPC-B, 8 clients" -n -M prepared -c 8 -j 2 -T 3
bench "pgbench TPC-B" -n -c 1 -T 3

PERCODB_TEST_PG_DSN="postgres://postgres@127.0.0.1:$port/percodb" go test -count=1 ./bench/tpce/... >"$work/out" 2>&1 || fail "tests of bench tpce: $(cat "$work/out")"
echo "ok   tests of bench tpce on percodb"

# An ordinary role with a schema of its own, and the programs that come with PostgreSQL.
sql -c 'create role owner login' -c 'create schema own authorization owner' -c 'alter role owner set search_path = own' >/dev/null
pgbench -h 127.0.0.1 -p "$port" -U owner -i -s 1 -q percodb >"$work/out" 2>&1 || fail "pgbench -i as an ordinary role: $(cat "$work/out")"
out=$(pgbench -h 127.0.0.1 -p "$port" -U owner -n -c 2 -T 1 percodb 2>&1) && grep -q 'number of failed transactions: 0' <<<"$out" || fail "pgbench as an ordinary role: $out"
expect "an ordinary role cannot read others' tables" 'ERROR:  permission denied for table account' \
  bash -c "psql -h 127.0.0.1 -p $port -U owner -d percodb -XAtqc 'table public.account' 2>&1 || true"
pg_isready -q -h 127.0.0.1 -p "$port" || fail "pg_isready"
createuser -h 127.0.0.1 -p "$port" -U postgres worker && dropuser -h 127.0.0.1 -p "$port" -U postgres worker || fail "createuser, dropuser"
if createuser -h 127.0.0.1 -p "$port" -U owner worker 2>"$work/out"; then fail "an ordinary role creates roles"; fi
sql -c "alter role owner password 'first'" >/dev/null
pg_dumpall -h 127.0.0.1 -p "$port" -U postgres -l percodb -g >"$work/globals" 2>"$work/out" || fail "pg_dumpall -g: $(cat "$work/out")"
verifier=$(sql -c "select rolpassword from pg_authid where rolname = 'owner'")
sql -c 'drop owned by owner cascade' -c 'drop role owner' >/dev/null
grep -v 'ROLE postgres' "$work/globals" | sql >"$work/out" 2>&1 || fail "loading pg_dumpall -g: $(cat "$work/out")"
expect "roles of pg_dumpall -g" "$verifier|t|{search_path=own}" \
  sql -c "select rolpassword, rolcanlogin, setconfig from pg_authid r join pg_db_role_setting on setrole = r.oid where rolname = 'owner'"
echo "ok   an ordinary role, and PostgreSQL's programs"

kill9
start
expect "history after kill -9" 't' sql -c 'select count(*) > 0 from pgbench_history'
kill -TERM "$pid"
wait "$pid" || fail "SIGTERM: exit code $?"
echo "ok   SIGTERM drains and stops"
"$work/percodb" check --data "$work/data" || fail "percodb check"
echo "ok   check"
