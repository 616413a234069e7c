#!/usr/bin/env bash
# percodb import mysql on a dump of 1 GB and more: time, MB/s, and the rows of both servers compared.
#
#   bench/mysqlimport.sh [FACTOR] [KILLS]
#
# Needs MariaDB's server and client (Debian: mariadb-server, mariadb-client) and psql. FACTOR scales the data (1 is about
# 1.1 GB); the import is killed and begun again KILLS times.
set -euo pipefail
factor=${1:-1} kills=${2:-0}
cd "$(dirname "$0")/.."
for tool in mariadbd mariadb-install-db mariadb mariadb-dump psql; do
  PATH=$PATH:/usr/sbin command -v $tool >/dev/null || { echo "mysqlimport.sh: $tool is missing (Debian: mariadb-server, mariadb-client, postgresql-client)" >&2; exit 2; }
done
PATH=$PATH:/usr/sbin
work=$(mktemp -d) port=${PERCODB_PORT:-25020}
pids=()
finish() { for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; wait "$p" 2>/dev/null || true; done; rm -rf "$work"; }
trap finish EXIT
user=$(id -un)
mariadb-install-db --no-defaults --user="$user" --datadir="$work/maria" --auth-root-authentication-method=normal --skip-test-db >"$work/install.log" 2>&1
mariadbd --no-defaults --user="$user" --datadir="$work/maria" --socket="$work/s" --pid-file="$work/pid" --skip-networking \
  --innodb-flush-log-at-trx-commit=0 --innodb-buffer-pool-size=512M --default-time-zone=+00:00 >"$work/maria.log" 2>&1 &
pids+=($!)
my() { mariadb --no-defaults -S "$work/s" -u root "$@"; }
for _ in $(seq 100); do my -e 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.2; done

echo "filling MariaDB"
my <<SQL
CREATE DATABASE shop CHARACTER SET utf8mb4; USE shop;
CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT UNSIGNED NOT NULL, status ENUM('new','paid','sent','back') NOT NULL,
  flags SET('gift','fast','fragile') NOT NULL, total DECIMAL(12,2) NOT NULL, ratio DOUBLE, created DATETIME(3) NOT NULL,
  changed TIMESTAMP NULL, ref CHAR(16) NOT NULL, note VARCHAR(200), UNIQUE KEY ref (ref), KEY customer (customer, created));
INSERT INTO orders SELECT seq, seq * 7919 % 100003, 1 + seq % 4, seq % 8, seq % 1000000 / 100, IF(seq % 5 = 0, NULL, seq / 8),
  '2020-01-01' + INTERVAL seq SECOND + INTERVAL seq % 1000 * 1000 MICROSECOND, IF(seq % 3 = 0, NULL, '2021-01-01' + INTERVAL seq SECOND),
  SUBSTR(MD5(seq), 1, 16), IF(seq % 4 = 0, NULL, CONCAT('it''s "order" ', seq, '\\\\ line\nand über ', REPEAT(MD5(seq), 3)))
  FROM seq_1_to_$((factor * 1600000));
CREATE TABLE items (
  order_id BIGINT UNSIGNED NOT NULL, line TINYINT UNSIGNED NOT NULL, sku VARCHAR(32) NOT NULL, quantity SMALLINT UNSIGNED NOT NULL,
  price DECIMAL(10,4) NOT NULL, PRIMARY KEY (order_id, line), KEY sku (sku), FOREIGN KEY (order_id) REFERENCES orders (id));
INSERT INTO items SELECT seq DIV 3 + 1, seq % 3, CONCAT('SKU-', seq * 31 % 50021), seq % 60000, seq % 100000 / 10000 FROM seq_1_to_$((factor * 3000000));
CREATE TABLE documents (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(200) CHARACTER SET latin1, body MEDIUMTEXT, payload VARBINARY(300));
INSERT INTO documents SELECT seq, CONCAT('Título ', seq), REPEAT(CONCAT(MD5(seq), ' – \t'), 40), UNHEX(REPEAT(SHA1(seq), 8)) FROM seq_1_to_$((factor * 330000));
SQL
echo "dumping"
mariadb-dump --no-defaults -S "$work/s" -u root --single-transaction --hex-blob --databases shop >"$work/shop.sql"
ls -l "$work/shop.sql" | awk '{printf "%.2f GB, longest line %s\n", $5 / 1e9, ""}'

go build -o "$work/percodb" ./cmd/percodb
"$work/percodb" start --listen "127.0.0.1:$port" --data "$work/data" >"$work/percodb.log" 2>&1 &
pids+=($!)
url="postgres://postgres@127.0.0.1:$port/percodb"
for _ in $(seq 100); do psql -q "$url" -c 'SELECT 1' >/dev/null 2>&1 && break; sleep 0.2; done

for i in $(seq "$kills"); do
  "$work/percodb" import mysql "$work/shop.sql" --url "$url" >"$work/import.log" 2>&1 &
  p=$!
  sleep $((4 + 3 * i))
  if kill -9 "$p" 2>/dev/null; then echo "import $i killed"; fi
  wait "$p" 2>/dev/null || true
done
/usr/bin/time -f 'importer: %e s, %U s user, %S s system, %M KB at most' "$work/percodb" import mysql "$work/shop.sql" --url "$url"

echo "comparing"
pg() { psql -q "$url" -c "SET TimeZone = 'UTC'" -c "COPY ($1) TO STDOUT WITH (NULL 'NULL')" | md5sum; }
compare() { # TABLE, MySQL's query, percodb's query
  a=$(my --default-character-set=utf8mb4 --quick -BN shop -e "$2" | md5sum) b=$(pg "$3")
  if [ "$a" = "$b" ]; then echo "$1: rows are equal"; else echo "$1: ROWS DIFFER"; exit 1; fi
}
compare orders 'SELECT id, customer, status, flags, total, HEX(note), FLOOR(ratio * 8), DATE_FORMAT(created, "%Y-%m-%d %H:%i:%s.%f"), changed, ref FROM orders ORDER BY id' \
  "SELECT id, customer, status, flags, total, upper(encode(convert_to(note, 'UTF8'), 'hex')), floor(ratio * 8), to_char(created, 'YYYY-MM-DD HH24:MI:SS.US'), changed AT TIME ZONE 'UTC', ref FROM shop.orders ORDER BY id"
compare items 'SELECT * FROM items ORDER BY order_id, line' 'SELECT * FROM shop.items ORDER BY order_id, line'
compare documents 'SELECT id, title, HEX(body), HEX(payload) FROM documents ORDER BY id' \
  "SELECT id, title, upper(encode(convert_to(body, 'UTF8'), 'hex')), upper(encode(payload, 'hex')) FROM shop.documents ORDER BY id"
