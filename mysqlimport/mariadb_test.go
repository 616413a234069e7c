package mysqlimport

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// mariaDB is a MariaDB server for a test.
type mariaDB struct{ socket string }

// startMariaDB starts MariaDB's server, or skips the test if it is not installed.
func startMariaDB(t *testing.T) *mariaDB {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/usr/local/sbin")
	for _, tool := range []string{"mariadbd", "mariadb-install-db", "mariadb", "mariadb-dump"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: this test compares an import with MariaDB (Debian: mariadb-server, mariadb-client)", tool)
		}
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "maria") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	install := exec.Command("mariadb-install-db", "--no-defaults", "--user="+me.Username, "--datadir="+dir+"/data", "--auth-root-authentication-method=normal", "--skip-test-db")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("mariadb-install-db: %v\n%s", err, out)
	}
	m := &mariaDB{socket: dir + "/s"}
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "mariadbd", "--no-defaults", "--user="+me.Username, "--datadir="+dir+"/data", "--socket="+m.socket,
		"--pid-file="+dir+"/pid", "--skip-networking", "--sql-mode=", "--default-time-zone=+00:00", "--innodb-flush-log-at-trx-commit=0")
	if err := cmd.Start(); err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		if exec.Command("mariadb", "--no-defaults", "-S", m.socket, "-u", "root", "-e", "SELECT 1").Run() == nil {
			return m
		}
		if time.Now().After(deadline) {
			t.Fatal("MariaDB did not start within 30 seconds")
		}
	}
}

func (m *mariaDB) command(t *testing.T, tool string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(tool, append([]string{"--no-defaults", "-S", m.socket, "-u", "root"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

// run executes statements.
func (m *mariaDB) run(t *testing.T, text string) {
	t.Helper()
	cmd := m.command(t, "mariadb", "--default-character-set=utf8mb4")
	cmd.Stdin = strings.NewReader(text)
	if err := cmd.Run(); err != nil {
		t.Fatalf("MariaDB: %v", err)
	}
}

// output runs a tool and returns its output.
func (m *mariaDB) output(t *testing.T, tool string, args ...string) string {
	t.Helper()
	out, err := m.command(t, tool, args...).Output()
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return string(out)
}

// source is a database with all types.
const source = `
CREATE DATABASE Src CHARACTER SET latin1; USE Src;
CREATE TABLE numbers (
  id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, ti tinyint, tu tinyint unsigned, s smallint, su smallint unsigned, m mediumint,
  mu mediumint unsigned, i int, iu int unsigned, b bigint, bu bigint unsigned, z int(8) unsigned zerofill,
  d decimal(30,10), f float, db double, b1 bit(1), b9 bit(9), b64 bit(64), y year, bool boolean);
INSERT INTO numbers VALUES
  (1,-128,0,-32768,0,-8388608,0,-2147483648,0,-9223372036854775808,0,0,-12345678901234567890.0123456789,-1.5,-1e300,b'0',b'0',b'0',1901,false),
  (2,127,255,32767,65535,8388607,16777215,2147483647,4294967295,9223372036854775807,18446744073709551615,42,99999999999999999999.9999999999,325.25,2.2250738585072014e-308,b'1',b'111111111',b'1111111111111111111111111111111111111111111111111111111111111111',2155,true),
  (7,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE strings (
  id int NOT NULL PRIMARY KEY, c char(5), v varchar(300), u varchar(100) CHARACTER SET utf8mb4, cy varchar(50) CHARACTER SET cp1251, k varchar(50) CHARACTER SET gbk,
  t text CHARACTER SET utf8mb4, bi binary(4), vb varbinary(600), bl blob, e enum('a','b''c','d,e') CHARACTER SET utf8mb4, s set('x','y y','z\\') CHARACTER SET utf8mb4, j json, uid uuid,
  KEY v (v), UNIQUE KEY u (u));
INSERT INTO strings VALUES
  (1,'abc','it''s "x" \\ \n\r\t\b\Z\% end','日本語 😀','Привет','你好','a\tb\\N','ab','',0x00010203,'b''c','x,z\\','{"a": "b\\"c"}','123e4567-e89b-12d3-a456-426614174000'),
  (2,'','','','','','',0x00,0x5c4e0a0d27221a00ff,'','a','','[]',NULL),
  (3,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL),
  (4,'é','ü€','x','я','字','--  /* no comment */ ; DELIMITER',0xffffffff,REPEAT(UNHEX('00ff27'),200),REPEAT(UNHEX('5c0027'),1000),'d,e','y y,x','1','ffffffff-ffff-ffff-ffff-ffffffffffff');
CREATE TABLE times (id int NOT NULL PRIMARY KEY, d date, dt datetime, dt6 datetime(6), ts timestamp NULL, ts3 timestamp(3) NULL, t time, t2 time(2));
INSERT INTO times VALUES (1,'2020-02-29','1000-01-01 00:00:00','9999-12-31 23:59:59.999999','1970-01-01 00:00:01','2038-01-19 03:14:07.999','23:59:59','-838:59:59.25'),
  (2,NULL,NULL,NULL,NULL,NULL,NULL,NULL),(3,'0000-00-00','2020-00-00 00:00:00','0000-00-00 00:00:00','0000-00-00 00:00:00',NULL,'00:00:00','100:00:00');
CREATE TABLE pairs (a int, b varchar(20), n int, PRIMARY KEY (a, b), KEY n (n, b), CONSTRAINT to_strings FOREIGN KEY (a) REFERENCES strings (id));
INSERT INTO pairs SELECT 1, CONCAT('k', seq), seq % 7 FROM seq_1_to_5000;
CREATE TABLE empty_one (a int);
CREATE VIEW see AS SELECT id FROM numbers;
CREATE TRIGGER tr BEFORE INSERT ON pairs FOR EACH ROW SET NEW.n = 1;
`

// columns are the tables' columns: MariaDB's expression, and percodb's. Expressions are compared as text, without
// trailing zeros of times and numbers.
var columns = map[string][][2]string{
	"numbers": same("id", "ti", "tu", "s", "su", "m", "mu", "i", "iu", "b", "bu", "z+0|z", "d", "f", "db", "b1+0|b1", "b9+0|b9", "b64+0|b64", "y+0|y", "bool"),
	"strings": same("id", "c", "v", "u", "cy", "k", "t", "HEX(bi)|upper(encode(bi, 'hex'))", "HEX(vb)|upper(encode(vb, 'hex'))", "HEX(bl)|upper(encode(bl, 'hex'))", "e", "s", "j", "uid"),
	"times": same("id", "IF(d = 0, NULL, d)|d", "IF(DAY(dt) = 0, NULL, dt)|dt", "IF(dt6 = 0, NULL, dt6)|dt6",
		"IF(ts = 0, NULL, ts)|ts AT TIME ZONE 'UTC'", "ts3|ts3 AT TIME ZONE 'UTC'", "t", "t2"),
	"pairs":     same("a", "b", "n"),
	"empty_one": same("a"),
}

func same(list ...string) (out [][2]string) {
	for _, x := range list {
		a, b, two := strings.Cut(x, "|")
		if !two {
			b = a
		}
		out = append(out, [2]string{a, b})
	}
	return out
}

// compare compares all rows of both servers.
func (m *mariaDB) compare(t *testing.T, s *server, schema string) {
	t.Helper()
	for name, list := range columns {
		var theirs, ours []string
		for _, c := range list {
			theirs = append(theirs, "IFNULL(HEX(CONVERT("+c[0]+" USING utf8mb4)), 'NULL')")
			ours = append(ours, c[1]+"::text")
		}
		var want, got []string
		for _, line := range strings.Split(strings.TrimSpace(m.output(t, "mariadb", "--default-character-set=utf8mb4", "-BN", "-e", "SELECT "+strings.Join(theirs, ", ")+" FROM Src."+name+" ")), "\n") {
			if line == "" {
				continue
			}
			var fields []string
			for _, f := range strings.Split(line, "\t") {
				if text, err := hex.DecodeString(f); err == nil {
					f = normal(string(text))
				}
				fields = append(fields, f)
			}
			want = append(want, strings.Join(fields, "|"))
		}
		results, err := s.conn.PgConn().Exec(context.Background(), "SET extra_float_digits = 0; SELECT "+strings.Join(ours, ", ")+" FROM "+schema+"."+name).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range results[1].Rows {
			var fields []string
			for _, v := range row {
				f := "NULL"
				if v != nil {
					f = normal(string(v))
				}
				fields = append(fields, f)
			}
			got = append(got, strings.Join(fields, "|"))
		}
		if diff := difference(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

var exponent = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?e[-+]?[0-9]+$`)

// normal removes the trailing zeros of a fraction, and formats floats alike.
func normal(text string) string {
	if exponent.MatchString(text) {
		f, _ := strconv.ParseFloat(text, 64)
		return fmt.Sprintf("%.15g", f)
	}
	if dot := strings.LastIndexByte(text, '.'); dot > 0 && strings.Trim(text[dot+1:], "0123456789") == "" {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// difference compares two sets of rows.
func difference(want, got []string) string {
	count := map[string]int{}
	for _, row := range want {
		count[row]++
	}
	for _, row := range got {
		count[row]--
	}
	var b strings.Builder
	for row, n := range count {
		switch {
		case n > 0:
			fmt.Fprintf(&b, "\nMariaDB alone: %q", row)
		case n < 0:
			fmt.Fprintf(&b, "\npercodb alone: %q", row)
		}
	}
	if len(want) != len(got) {
		fmt.Fprintf(&b, "\n%d rows, %d rows", len(want), len(got))
	}
	return b.String()
}

// Goal: the rows of imported tables with all types equal those of their source. Method: dumps of MariaDB's tools.
func TestMariaDB(t *testing.T) {
	m := startMariaDB(t)
	m.run(t, source)
	s := startServer(t)
	for i, c := range []struct {
		name string
		dump []string
	}{
		{"mysqldump", []string{"mariadb-dump", "Src"}},
		{"hex-blob", []string{"mariadb-dump", "--hex-blob", "--databases", "Src"}},
		{"a row each, with columns", []string{"mariadb-dump", "--skip-extended-insert", "--complete-insert", "Src"}},
		{"latin1", []string{"mariadb-dump", "--default-character-set=binary", "--hex-blob", "Src"}},
		{"mydumper", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := t.TempDir()
			if c.dump == nil {
				if _, err := exec.LookPath("mydumper"); err != nil {
					t.Skip("mydumper is not installed (Debian: mydumper)")
				}
				if out, err := exec.Command("mydumper", "-S", m.socket, "-u", "root", "-B", "Src", "-o", path, "-c", "-r", "1000", "-G").CombinedOutput(); err != nil {
					t.Fatalf("mydumper: %v\n%s", err, out)
				}
			} else if err := os.WriteFile(filepath.Join(path, "dump.sql"), []byte(m.output(t, c.dump[0], c.dump[1:]...)), 0o600); err != nil {
				t.Fatal(err)
			}
			schema := fmt.Sprintf("s%d", i)
			r := mustImport(t, Options{Paths: []string{path}, URL: s.url, Schema: schema, Interval: true, Numeric: true})
			if r.Refused > 0 || len(r.Tables) != len(columns) {
				t.Errorf("%d tables, %d statements refused: %+v", len(r.Tables), r.Refused, r.LeftOut)
			}
			m.compare(t, s, schema)
			if got := s.query(t, "INSERT INTO "+schema+".numbers (ti) VALUES (1) RETURNING id"); got != "8\n" {
				t.Errorf("the next id is %q", got)
			}
		})
	}
}
