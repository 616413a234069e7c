#!/usr/bin/env bash
# A list of sqllogictest files on percodb over Bigtable's emulator, each a process of its own: per file the counts and the time.
#
#   test/e2e/bigtable.sh LIST ROOT [EXCLUDE]
#
# LIST names files below ROOT, one a line; EXCLUDE has FILE:LINE of records to skip.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '4,6s/^# *//p' "$0"; exit 2; }
list=$(realpath "$1") root=$(realpath "$2") exclude=${3:+$(realpath "$3")}
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
port=${PERCODB_E2E_PORT:-5553}
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

go build -o "$work/percodb" ./cmd/percodb
"$work/percodb" bigtable-emulator --listen "127.0.0.1:$((port + 1))" >"$work/log" 2>&1 &
pids+=($!)
"$work/percodb" start --engine bigtable --project p --instance i --emulator "127.0.0.1:$((port + 1))" --listen "127.0.0.1:$port" >>"$work/log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  (echo >"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
  kill -0 "${pids[@]}" 2>/dev/null || { cat "$work/log"; exit 1; }
  sleep 0.1
done
"$work/percodb" sqllogic -v --url "postgres://postgres@127.0.0.1:$port/percodb" --list "$list" --root "$root" ${exclude:+--exclude "$exclude"}
