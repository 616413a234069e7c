#!/usr/bin/env bash
# PostgreSQL's drivers against percodb: libpq (psql), pgx, pgJDBC, node-postgres, psycopg and psycopg2 log in with passwords (in the
# clear, over TLS, with channel binding) and certificates, are refused where they should be, and work with types, prepared
# statements, transactions, COPY, errors, notifications and cancellation.
#
# Needs psql on the PATH, and installs the rest with apt-get and npm. What cannot be downloaded is skipped, and named at the end;
# with PERCODB_E2E_COMPLETE=1 that is a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."

here=$PWD/test/e2e/drivers
work=$(mktemp -d)
port=${PERCODB_E2E_PORT:-5553}
pid=
skipped=()
trap 'kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; echo "--- server log"; tail -n 30 "$work/log"; exit 1; }
skip() { skipped+=("$1"); echo "SKIP $1"; }

# install PACKAGE…: false if they cannot be downloaded or installed.
updated=
install() {
  dpkg-query -W -f '${Status}\n' "$@" 2>/dev/null | grep -c '^install ok installed$' | grep -qx "$#" && return
  [ -n "$updated" ] || { timeout 180 apt-get update -qq >>"$work/apt" 2>&1 || true; updated=1; }
  DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -qq --no-install-recommends --download-only "$@" >>"$work/apt" 2>&1 || return 1
  DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -qq --no-install-recommends "$@" >>"$work/apt" 2>&1
}

# jdbc finds pgJDBC and sets jar. Debian 12 has a version without channel binding; that of Debian 13 is then unpacked, not installed: it
# is Java, and needs nothing else of Debian 13. apt-get verifies it with Debian's keys.
jar=
jdbc() {
  install libpostgresql-jdbc-java || return 1
  jar=/usr/share/java/postgresql.jar
  local installed
  installed=$(dpkg-query -W -f '${Version}' libpostgresql-jdbc-java)
  dpkg --compare-versions "$installed" ge 42.7.5 && return
  newer_jdbc || skip "channel binding of pgJDBC: no version from 42.7.5 on can be downloaded (this one is $installed)"
}
newer_jdbc() {
  local release options=(-qq -o "Dir::Etc::sourcelist=$work/none.list" -o "Dir::Etc::sourceparts=$work/sources" -o "Dir::State::lists=$work/lists" -o Acquire::Languages=none)
  release=$(. /etc/os-release; echo "$VERSION_CODENAME")
  mkdir -p "$work/sources" "$work/lists/partial" "$work/jdbc"
  sed "s/\b$release\b/trixie/g" /etc/apt/sources.list.d/debian.sources >"$work/sources/trixie.sources" 2>>"$work/apt" || return 1
  touch "$work/none.list"
  timeout 180 apt-get "${options[@]}" update >>"$work/apt" 2>&1 || return 1
  (cd "$work/jdbc" && timeout 180 apt-get "${options[@]}" download libpostgresql-jdbc-java) >>"$work/apt" 2>&1 || return 1
  dpkg-deb -x "$work"/jdbc/*.deb "$work/jdbc" || fail "unpack pgJDBC"
  jar=$work/jdbc/usr/share/java/postgresql.jar
}

# node_modules finds node-postgres and sets DRIVERS_NODE. package-lock.json has the packages' checksums.
node_modules() {
  if command -v npm >/dev/null; then
    mkdir -p "$work/node" && cp "$here/package.json" "$here/package-lock.json" "$work/node/"
    if (cd "$work/node" && timeout 120 npm ci --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error >>"$work/npm" 2>&1); then
      export DRIVERS_NODE=$work/node
      return
    fi
    grep -q EINTEGRITY "$work/npm" && fail "npm ci: $(cat "$work/npm")"
  fi
  skip "channel binding of node-postgres, pg-copy-streams: npm has no packages here; Debian's node-postgres is older"
  install nodejs node-pg || return 1
  export DRIVERS_NODE=/usr/share/nodejs
}

build() {
  go build -o "$work/percodb" ./cmd/percodb
  export DRIVERS_CERTS=$work/certs DRIVERS_OTHER=$work/other DRIVERS_PORT=$port DRIVERS_PASSWORD='sécret pass'
  "$work/percodb" cert --dir "$DRIVERS_CERTS" --host localhost --user certified >/dev/null
  "$work/percodb" cert --dir "$DRIVERS_OTHER" --host localhost >/dev/null
  cat >"$work/rules" <<RULES
local   all all                     trust
host    all plain     127.0.0.1/32  scram-sha-256
hostssl all secured   127.0.0.1/32  scram-sha-256
hostssl all certified 127.0.0.1/32  cert
RULES
  start
  admin -c "create role plain login password '$DRIVERS_PASSWORD'" -c "create role secured login password '$DRIVERS_PASSWORD'" \
    -c 'create role certified login' -c 'grant create on schema public to secured' -c 'grant create on database percodb to secured' >/dev/null || fail "the roles"
  stop
}
start() {
  "$work/percodb" start --listen "127.0.0.1:$port" --admin-listen "127.0.0.1:$((port + 1))" --data "$work/data" --socket-dir "$work" --hba "$work/rules" \
    --tls-cert "$DRIVERS_CERTS/server.crt" --tls-key "$DRIVERS_CERTS/server.key" --tls-ca "$DRIVERS_CERTS/ca.crt" >>"$work/log" 2>&1 &
  pid=$!
  for _ in $(seq 100); do
    admin -c 'select 1' >/dev/null 2>&1 && break
    kill -0 "$pid" 2>/dev/null || fail "the server ended at start"
    sleep 0.1
  done
  admin -c 'select 1' >/dev/null || fail "the server does not answer"
}
stop() {
  kill -TERM "$pid"
  wait "$pid" || fail "SIGTERM: exit code $?"
  pid=
}
admin() { psql "host=$work port=$port user=postgres dbname=percodb" -v ON_ERROR_STOP=1 -XAtq "$@"; }

# libpq, by psql. A case is a connection string, and a part of what psql prints.
libpq() {
  local secured="host=localhost dbname=percodb port=$port user=secured sslmode=verify-full sslrootcert=$DRIVERS_CERTS/ca.crt"
  local certified="host=localhost dbname=percodb port=$port user=certified sslmode=verify-full sslrootcert=$DRIVERS_CERTS/ca.crt"
  local plain="host=localhost dbname=percodb port=$port user=plain sslmode=disable"
  say() { # say NAME WANT CONNECTION
    local got
    got=$(PGPASSWORD=${password-$DRIVERS_PASSWORD} psql -XAtq -v VERBOSITY=verbose -c 'select current_user, ssl from pg_stat_ssl where pid = pg_backend_pid()' "$3" 2>&1) || true
    [[ $got = *"$2"* ]] || fail "libpq: $1: want «$2», got «$got»"
    echo "ok   libpq: $1"
  }
  echo "     libpq of $(psql --version)"
  say "SCRAM in the clear" 'plain|f' "$plain"
  say "SCRAM over TLS without channel binding" 'secured|t' "$secured channel_binding=disable"
  say "SCRAM with channel binding" 'secured|t' "$secured channel_binding=require"
  say "client certificate" 'certified|t' "$certified sslcert=$DRIVERS_CERTS/client-certified.crt sslkey=$DRIVERS_CERTS/client-certified.key"
  password=wrong say "wrong password" 'FATAL:  password authentication failed for user "plain"' "$plain"
  password=wrong say "wrong password with channel binding" 'FATAL:  password authentication failed for user "secured"' "$secured channel_binding=require"
  password= say "no password" 'no password supplied' "$plain"
  say "no TLS where it is demanded" 'user "secured", database "percodb", no encryption' "$secured sslmode=disable"
  say "channel binding without TLS" 'channel binding' "$plain channel_binding=require"
  say "no client certificate" 'connection requires a valid client certificate' "$certified"
  say "the server's name is wrong" 'does not match host name "127.0.0.1"' "$secured host=127.0.0.1"
  say "the server's authority is wrong" 'certificate verify failed' "$secured sslrootcert=$DRIVERS_OTHER/ca.crt"

  as_secured() { PGPASSWORD=$DRIVERS_PASSWORD psql "$secured channel_binding=require" -v ON_ERROR_STOP=1 -XAtq "$@"; }
  as_secured -c 'create table of_psql (id int primary key, name text, price numeric(10,2), at timestamptz, raw bytea, key uuid, tags text[])' >/dev/null || fail "libpq: create table"
  local row='7|Ünïcode 🙂|12.50|2026-02-28 23:59:59.123456+00|\x00ff|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{"a b",NULL}'
  tr '|' '\t' <<<"${row/\\x/\\\\x}" | sed 's/,NULL/,NULL/' >"$work/row"
  as_secured -c 'set timezone = UTC' -c "\\copy of_psql from '$work/row'" || fail "libpq: \\copy"
  [ "$(as_secured -c 'set timezone = UTC' -c 'select * from of_psql')" = "$row" ] || fail "libpq: types: $(as_secured -c 'select * from of_psql')"
  echo "ok   libpq: copy and types"
  [ "$(as_secured -c 'prepare p (int) as select $1 * 2' -c 'execute p (21)')" = 42 ] || fail "libpq: prepare"
  echo "ok   libpq: prepared statements"
  [ "$(as_secured -c begin -c 'delete from of_psql' -c rollback -c 'select count(*) from of_psql')" = 1 ] || fail "libpq: rollback"
  echo "ok   libpq: transactions"
  as_secured -v VERBOSITY=sqlstate -c "insert into of_psql values (7)" >"$work/out" 2>&1 && fail "libpq: a key was inserted twice"
  grep -q '23505' "$work/out" || fail "libpq: errors: $(cat "$work/out")"
  echo "ok   libpq: errors"
  PGPASSWORD=$DRIVERS_PASSWORD psql "$secured channel_binding=require" -XAtq -c 'select pg_sleep(600)' >"$work/out" 2>&1 &
  local sleeper=$!
  for _ in $(seq 600); do
    kill -INT "$sleeper" 2>/dev/null || break # psql then sends a CancelRequest, if its statement is under way
    sleep 0.1
  done
  grep -q 'canceling statement due to user request' "$work/out" || fail "libpq: cancel: $(cat "$work/out")"
  echo "ok   libpq: cancel"
}

# driver NAME COMMAND… on a server that has just been started, which has forgotten the wrong passwords of the others: they delay logins.
driver() {
  start
  timed "$@"
  stop
}

# timed NAME COMMAND…
timed() {
  local began=$SECONDS result
  "${@:2}"
  result=$?
  echo "     $1: $((SECONDS - began)) s"
  return $result
}

timed "build" build
driver "libpq" libpq
driver "pgx" timeout 300 go run ./test/e2e/drivers/pgx

if timed "install psycopg" install python3-psycopg; then
  driver "psycopg" timeout 120 /usr/bin/python3 "$here/python.py" psycopg
else
  skip "psycopg: it cannot be downloaded"
fi
if timed "install psycopg2" install python3-psycopg2; then
  driver "psycopg2" timeout 120 /usr/bin/python3 "$here/python.py" psycopg2
else
  skip "psycopg2: it cannot be downloaded"
fi
if timed "install node-postgres" node_modules; then
  driver "node-postgres" timeout 120 node --no-deprecation "$here/node.mjs"
else
  skip "node-postgres: it cannot be downloaded"
fi
if timed "install pgJDBC" jdbc && { command -v javac >/dev/null || timed "install Java" install default-jdk-headless; }; then
  driver "pgJDBC" timeout 120 java -cp "$jar" "$here/Jdbc.java"
else
  skip "pgJDBC: it, or Java, cannot be downloaded"
fi

! grep -qiE 'panic|XX000' "$work/log" || fail "the server logged an internal error"
if [ ${#skipped[@]} -gt 0 ]; then
  printf 'Skipped: %s\n' "${skipped[@]}"
  [ -z "${PERCODB_E2E_COMPLETE:-}" ] || exit 1
fi
