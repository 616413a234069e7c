#!/usr/bin/env bash
# Wall time of a sqllogictest list on PostgreSQL and on percodb with the same runner.
#
#   bench/sqllogic.sh LIST ROOT [EXCLUDE]
set -euo pipefail
list=$(realpath "$1") root=$(realpath "$2") exclude=${3:+$(realpath "$3")}
cd "$(dirname "$0")/.."
. bench/lib.sh

start_postgres
start_percodb
declare -A took
for side in postgresql percodb; do
  port=$pg_port
  [ "$side" = postgresql ] || port=$percodb_port
  begin=$(date +%s.%N)
  "$work/percodb" sqllogic --url "postgres://postgres@127.0.0.1:$port/percodb" --list "$list" --root "$root" ${exclude:+--exclude "$exclude"} | tail -n 1
  took[$side]=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN {print b - a}')
done
awk -v a="${took[postgresql]}" -v b="${took[percodb]}" 'BEGIN {printf "PostgreSQL %.1f s, percodb %.1f s: %.2fx\n", a, b, b / a}'
