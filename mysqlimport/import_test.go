package mysqlimport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/percodb/percodb/internal/loading"
	"github.com/percodb/percodb/node"
)

// server is a server in the test's process.
type server struct {
	url  string
	conn *pgx.Conn
	node *node.Node
	dir  string
}

func startServer(t *testing.T) *server {
	t.Helper()
	s := &server{dir: t.TempDir()}
	s.start(t)
	t.Cleanup(func() { s.stop(t) })
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	var err error
	if s.node, err = node.Start(context.Background(), node.Options{Role: node.RoleAll, Data: s.dir, Listen: "127.0.0.1:0", Version: "15.0"}); err != nil {
		t.Fatal(err)
	}
	s.url = "postgres://postgres@" + s.node.Addr().String() + "/percodb?sslmode=disable"
	if s.conn, err = pgx.Connect(context.Background(), s.url); err != nil {
		t.Fatal(err)
	}
}

func (s *server) stop(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.conn.Close(ctx)
	if s.node != nil {
		s.node.Close(ctx)
	}
}

// query returns the rows of a query as text, columns separated by |.
func (s *server) query(t *testing.T, query string) string {
	t.Helper()
	results, err := s.conn.PgConn().Exec(context.Background(), query).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var b strings.Builder
	for _, row := range results[len(results)-1].Rows {
		for i, v := range row {
			if i > 0 {
				b.WriteByte('|')
			}
			if v == nil {
				v = []byte("NULL")
			}
			b.Write(v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// write writes files, compressed as their names say, and returns the directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		data := []byte(text)
		switch filepath.Ext(name) {
		case ".gz":
			var b bytes.Buffer
			w := gzip.NewWriter(&b)
			w.Write(data)
			w.Close()
			data = b.Bytes()
		case ".zst":
			w, err := zstd.NewWriter(nil)
			if err != nil {
				t.Fatal(err)
			}
			data = w.EncodeAll(data, nil)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustImport(t *testing.T, o Options) *Report {
	t.Helper()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestMysqldump(t *testing.T) {
	s := startServer(t)
	dir := write(t, map[string]string{"a.sql.gz": mysqldumpText})
	r := mustImport(t, Options{Paths: []string{filepath.Join(dir, "a.sql.gz")}, URL: s.url})
	if r.Loaded != 3 || r.Resumed || len(r.Tables) != 1 || len(r.LeftOut) != 1 {
		t.Errorf("report %+v", r)
	}
	if got, want := s.query(t, "SELECT * FROM t ORDER BY a"), "1|x;y\n2|it's\n3|NULL\n"; got != want {
		t.Errorf("rows %q, want %q", got, want)
	}
	if got := s.query(t, "SELECT count(*) FROM pg_namespace WHERE nspname = 'percodb_import'"); got != "0\n" {
		t.Error("the schema percodb_import is left behind")
	}
	_, err := Run(context.Background(), Options{Paths: []string{filepath.Join(dir, "a.sql.gz")}, URL: s.url})
	if err == nil || !strings.Contains(err.Error(), "a.sql.gz:5: the table public.t exists already: drop it") {
		t.Errorf("a second import answers %v", err)
	}
}

// dumpling contains files with the names that Dumpling gives them.
var dumpling = map[string]string{
	"metadata":               "Started dump at: 2026-01-01 00:00:00\nFinished dump at: 2026-01-01 00:00:01\n",
	"shop-schema-create.sql": "/*!40101 SET NAMES binary*/;\nCREATE DATABASE `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n",
	"shop.o%2Er-schema.sql.zst": "/*!40014 SET FOREIGN_KEY_CHECKS=0*/;\n/*!40101 SET NAMES binary*/;\n" +
		"CREATE TABLE `o.r` (\n  `id` bigint(20) NOT NULL AUTO_INCREMENT,\n  `v` varchar(9) CHARACTER SET gbk DEFAULT NULL,\n  PRIMARY KEY (`id`) /*T![clustered_index] CLUSTERED */,\n  UNIQUE KEY `v` (`v`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin AUTO_INCREMENT=30001;\n",
	"shop.o%2Er.0000000010000.sql.gz":  "/*!40101 SET NAMES binary*/;\nINSERT INTO `o.r` VALUES\n(1,'a'),\n(2,'\xc4\xe3');\nINSERT INTO `o.r` VALUES\n(3,NULL);\n",
	"shop.o%2Er.0000000020000.sql.zst": "/*!40101 SET NAMES binary*/;\nINSERT INTO `o.r` VALUES\n(4,'d');\n",
	"shop.vw-schema.sql":               "/*!40101 SET NAMES binary*/;\nCREATE TABLE `vw`(\n`id` int\n)ENGINE=MyISAM;\n",
	"shop.vw-schema-view.sql":          "/*!40101 SET NAMES binary*/;\nDROP TABLE IF EXISTS `vw`;\nCREATE VIEW `vw` AS SELECT `id` FROM `o.r`;\n",
}

func TestDumpling(t *testing.T) {
	s := startServer(t)
	r := mustImport(t, Options{Paths: []string{write(t, dumpling)}, URL: s.url})
	if len(r.LeftOut) != 1 || !strings.Contains(r.LeftOut[0].Statement, "CREATE VIEW `vw`") {
		t.Errorf("left out: %+v", r.LeftOut)
	}
	if got, want := s.query(t, `SELECT * FROM shop."o.r" ORDER BY id`), "1|a\n2|你\n3|NULL\n4|d\n"; got != want {
		t.Errorf("rows %q, want %q", got, want)
	}
	if got := s.query(t, `INSERT INTO shop."o.r" (v) VALUES ('e') RETURNING id`); got != "30001\n" {
		t.Errorf("the next id is %q", got)
	}
	if _, err := s.conn.Exec(context.Background(), `INSERT INTO shop."o.r" (v) VALUES ('a')`); !loading.HasCode(err, "23505") {
		t.Errorf("a duplicate value answers %v", err)
	}
}

// Goal: a directory that cannot be imported as a whole is refused before anything of it is loaded.
func TestRefusedDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"incomplete":     {map[string]string{"metadata": "Started dump at: 2026\n", "d.t-schema.sql": "CREATE TABLE t (a int);"}, `no line "Finished dump at"`},
		"still dumping":  {map[string]string{"metadata.partial": "", "d.t-schema.sql": "CREATE TABLE t (a int);"}, "mydumper has not completed"},
		"CSV":            {map[string]string{"d.t-schema.sql": "CREATE TABLE t (a int);", "d.t.000000000.csv": "1\n"}, "--filetype sql"},
		"nothing in it":  {map[string]string{"notes.txt": ""}, "there are no files to import"},
		"no such things": {nil, "there are no files to import"},
	} {
		_, err := Run(context.Background(), Options{Paths: []string{write(t, c.files)}, URL: "postgres://127.0.0.1:1/none"})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Goal: an error names the row's line in the dump and what to do; --restart starts again.
func TestRefusedRows(t *testing.T) {
	s := startServer(t)
	for i, c := range []struct{ column, rows, want string }{
		{"`a` tinyint", "(1),\n(2),\n(300)", ":4: d.t"},
		{"`a` enum('x')", "('x'),\n('y')", ":3: d.t"},
		{"`a` int PRIMARY KEY", "(1),\n(2),\n(1)", "--restart"},
		{"`a` bigint unsigned", "(1),\n(18446744073709551615)", "--bigint-unsigned=numeric"},
		{"`a` time", "('10:00:00'),\n('100:00:00')", "--time=interval"},
		{"`a` date NOT NULL", "('2020-01-01'),\n('0000-00-00')", ":3: column a of d.t: the zero date '0000-00-00' cannot become NULL"},
		{"`a` varchar(9)", "('\xff')", "--default-character-set=utf8mb4"},
		{"`a` varchar(9)", "('a\\0')", "a BLOB"},
	} {
		dir := write(t, map[string]string{"x.sql": "USE d; CREATE TABLE t (" + c.column + ");\nINSERT INTO t VALUES " + c.rows + ";\n"})
		_, err := Run(context.Background(), Options{Paths: []string{dir}, URL: s.url, Restart: true})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "x.sql:") {
			t.Errorf("%d: error %v, want %q", i, err, c.want)
		}
	}
	dir := write(t, map[string]string{"x.sql": "USE d; CREATE TABLE t (a date NOT NULL);\nINSERT INTO t VALUES ('0000-00-00');\n"})
	if _, err := Run(context.Background(), Options{Paths: []string{dir}, URL: s.url}); err == nil || !strings.Contains(err.Error(), "start again with --restart") {
		t.Errorf("another dump of an unfinished import's table answers %v", err)
	}
	mustImport(t, Options{Paths: []string{dir}, URL: s.url, Restart: true, Zero: "-infinity"})
	if got := s.query(t, "SELECT * FROM d.t"); got != "-infinity\n" {
		t.Errorf("rows %q", got)
	}
}

// Goal: who interrupts an import at its end learns of its end: either that import has said that it is complete, or the same command says so.
// Method: an import whose context ends as soon as it is complete; the same import again.
func TestInterruptAtTheEnd(t *testing.T) {
	s := startServer(t)
	dir := write(t, map[string]string{"x.sql": "USE d; CREATE TABLE t (a int, KEY (a));\nINSERT INTO t VALUES (1),(2);\n"})
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	o := Options{Paths: []string{dir}, URL: s.url, Done: func(r *Report) {
		told++
		if !r.Complete || len(r.Tables) != 1 || r.Tables[0].Rows != 2 {
			t.Errorf("%+v", r)
		}
		cancel()
	}}
	if r, err := Run(ctx, o); err == nil || !r.Complete {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Run(t.Context(), o); err != nil || !r.Resumed || r.Loaded != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := s.query(t, "SELECT count(*) FROM d.t"); told != 2 || got != "2\n" {
		t.Errorf("told %d times, %s rows", told, got)
	}
}

// stopAt is a Progress that ends the import after a number of bytes.
type stopAt struct {
	rest atomic.Int64
	stop func()
}

func (*stopAt) Phase(string, int64) {}
func (p *stopAt) Add(n int64) {
	if p.rest.Add(-n) < 0 {
		p.stop()
	}
}

// Goal: an import that is interrupted repeatedly, by Ctrl-C and by the end of the server, loads each row once.
func TestInterrupts(t *testing.T) {
	defer func(n int64) { batchBytes = n }(batchBytes)
	batchBytes = 10_000
	s := startServer(t)
	var text strings.Builder
	text.WriteString("USE d;\n")
	const rows = 60_000
	for _, name := range []string{"t", "u"} { // t has a key; u would accept a row twice
		key := ""
		if name == "t" {
			key = " PRIMARY KEY"
		}
		fmt.Fprintf(&text, "CREATE TABLE %s (a int%s, b text, KEY (b));\nINSERT INTO %[1]s VALUES (0,'x')", name, key)
		for i := 1; i < rows; i++ {
			fmt.Fprintf(&text, ",(%d,'%d %s')", i, i, strings.Repeat("y", 50))
		}
		text.WriteString(";\n")
	}
	dir := write(t, map[string]string{"x.sql": text.String()})
	interrupted := 0
	for i := 0; ; i++ {
		ctx, cancel := context.WithCancel(context.Background())
		p := &stopAt{stop: cancel}
		p.rest.Store(int64(text.Len()) * int64(i) / 6)
		if i == 3 {
			p.stop = func() {
				if s.node != nil {
					s.node.Close(canceled())
					s.node = nil
				}
			}
		}
		r, err := Run(ctx, Options{Paths: []string{dir}, URL: s.url, Workers: 3, Progress: p})
		cancel()
		if s.node == nil {
			s.start(t)
		}
		if err == nil {
			if !r.Resumed {
				t.Error("the report does not say that the import was taken up")
			}
			break
		}
		var place *PlaceError
		if errors.As(err, &place) {
			t.Fatalf("run %d: %v", i, err)
		}
		if interrupted++; interrupted > 12 {
			t.Fatalf("the import does not end: %v", err)
		}
	}
	if interrupted < 4 {
		t.Errorf("the import was interrupted %d times only", interrupted)
	}
	want := fmt.Sprintf("%d|%d|%d\n", rows, rows, rows*(rows-1)/2)
	for _, name := range []string{"t", "u"} {
		if got := s.query(t, "SELECT count(*), count(DISTINCT a), sum(a) FROM d."+name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// canceled is a context that has ended, so that a server closes at once.
func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
