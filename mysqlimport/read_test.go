package mysqlimport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/percodb/percodb/internal/loading"
)

// harness reads texts without a server: it creates no tables and keeps the batches.
type harness struct {
	*importer
	rows strings.Builder
}

func newHarness() *harness {
	h := &harness{importer: &importer{}}
	h.o.Progress = loading.Discard{}
	h.state = &state{done: map[batchKey]bool{}, made: map[string]bool{}}
	h.make = func(context.Context, *table) error { return nil }
	h.mu.tables, h.mu.charsets, h.mu.schemas = map[string]*table{}, map[string]string{}, map[string]bool{}
	h.buffers.New = func() any { return new([]byte) }
	h.give = func(_ context.Context, b *batch) error {
		h.rows.WriteString(b.statement() + "\n")
		h.rows.Write(b.data)
		h.release(b)
		return nil
	}
	return h
}

// readText reads a dump from memory.
func (h *harness) readText(text string) error {
	return h.read(context.Background(), &dumpFile{path: "dump.sql"}, strings.NewReader(text))
}

// allValues is a table with a column of each kind, and rows with every form of literal.
const allValues = "CREATE TABLE `t` (`i` int, `b` bit(9), `v` text, `l` varchar(9) CHARACTER SET latin1, `y` varbinary(9), `d` date, `ts` timestamp NULL, `g` int AS (`i`+1) STORED, `u` uuid);\n"

func TestValues(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"INSERT INTO `t` VALUES (1,b'101','a','b','c','2020-01-02','2020-01-02 03:04:05',2,NULL);", "1\t5\ta\tb\t\\\\x63\t2020-01-02\t2020-01-02 03:04:05+00\t\\N\n"},
		{"/*!40103 SET TIME_ZONE='+05:30' */; INSERT  IGNORE INTO t (`ts`,`i`) VALUE ('2020-01-02 03:04:05', -0.5e3 ) , (null,0x10);", "2020-01-02 03:04:05+05:30\t-0.5e3\n\\N\t16\n"},
		{`INSERT INTO t (v) VALUES ('it''s \'\"\\ \0x');`, "error"},
		{`INSERT INTO t (v) VALUES ('it''s \'\"\\ \n\r\t\b\Z\%\_\q'),("a""b'c"),(_utf8mb4'x'),(N'n'),(_latin1 X'e9'),(0xc3a9);`,
			`it's '"\\ \n\r\t` + "\b\x1a" + `\\%\\_q` + "\n" + `a"b'c` + "\nx\nn\né\né\n"},
		{`INSERT INTO t (b) VALUES (0x1ff),(b'1'),('` + "\x01\x02" + `'),(7),(0b11),(0xabc);`, "511\n1\n258\n7\n3\n2748\n"},
		{`INSERT INTO t (y) VALUES (0x00ff),(X''),(_binary 'a\0b'),('é'),(_binary 0x01);`, "\\\\x00ff\n\\\\x\n\\\\x610062\n\\\\xc3a9\n\\\\x01\n"},
		{"SET NAMES binary; INSERT INTO t (v,l) VALUES ('\xc3\xa9','\xe9');", "é\té\n"},
		{"SET NAMES latin1; INSERT INTO t (v,l) VALUES ('\xe9','\x80');", "é\t€\n"},
		{"SET @a = @@character_set_client; SET character_set_client = latin1; SET character_set_client = @a; INSERT INTO t (v) VALUES ('é');", "é\n"},
		{"SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO,NO_BACKSLASH_ESCAPES'; INSERT INTO t (v) VALUES ('a\\');", "a\\\\\n"},
		{"INSERT INTO t (d,ts) VALUES ('0000-00-00','2020-00-01 00:00:00');", "\\N\t\\N\n"},
		{"/*!50003 INSERT INTO t (i) */ VALUES -- c\n (1) /* x */ , # y\n (TRUE)\n;", "1\n1\n"},
		{"DELIMITER ;;\nINSERT INTO t (v) VALUES (';');;\nDELIMITER ;\nINSERT INTO t (v) VALUES ('x');", ";\nx\n"},
		{"INSERT INTO t (i) VALUES (1);\nINSERT INTO t (i) VALUES (2);", "1\n2\n"},
		{"/*M!999999\\- enable the sandbox mode */\nINSERT INTO t (i) VALUES (1);", "1\n"},
		{"INSERT INTO t (v) VALUES (now());", "error"},
		{"INSERT INTO t (nothing) VALUES (1);", "error"},
		{"INSERT INTO t (i,v) VALUES (1);", "error"},
		{"INSERT INTO t (i) VALUES (1,2);", "error"},
		{"INSERT INTO t (i) VALUES (1) ON DUPLICATE KEY UPDATE i=1;", "error"},
		{"INSERT INTO t (i) SELECT 1;", "error"},
		{"INSERT INTO unknown VALUES (1);", "error"},
		{"INSERT INTO t (i) VALUES (1x);", "error"},
		{"INSERT INTO t (y) VALUES (X'abc');", "error"},
		{"INSERT INTO t (v) VALUES ('\xff') ; SET NAMES klingon;", "error"},
		{"UPDATE t SET i = 1;", "error"},
		{"\x00", "error"},
	} {
		for _, name := range []string{"whole", "byte by byte"} {
			h := newHarness()
			var in io.Reader = strings.NewReader(allValues + c.sql)
			if name != "whole" {
				in = iotest.OneByteReader(in)
			}
			err := h.read(context.Background(), &dumpFile{path: "dump.sql"}, in)
			var place *PlaceError
			switch {
			case c.want == "error":
				if !errors.As(err, &place) || place.Line < 2 || place.Text == "" {
					t.Errorf("%s: %s: error %v, want one with its place", name, c.sql, err)
				}
			case err != nil:
				t.Errorf("%s: %s: %v", name, c.sql, err)
			default:
				var got []string
				for _, line := range strings.SplitAfter(h.rows.String(), "\n") {
					if !strings.HasPrefix(line, "COPY ") {
						got = append(got, line)
					}
				}
				if rows := strings.Join(got, ""); rows != c.want {
					t.Errorf("%s: %s\ngot  %q\nwant %q", name, c.sql, rows, c.want)
				}
			}
		}
	}
}

// mysqldumpText has the form of mysqldump's output.
const mysqldumpText = `-- MySQL dump 10.13  Distrib 8.0.35, for Linux (x86_64)
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET TIME_ZONE='+00:00' */;
DROP TABLE IF EXISTS ` + "`t`" + `;
CREATE TABLE ` + "`t`" + ` (
  ` + "`a`" + ` int NOT NULL,
  ` + "`b`" + ` text
) ENGINE=InnoDB;
LOCK TABLES ` + "`t`" + ` WRITE;
/*!40000 ALTER TABLE ` + "`t`" + ` DISABLE KEYS */;
INSERT INTO ` + "`t`" + ` VALUES (1,'x;y'),(2,'it\'s'),
(3,NULL);
/*!40000 ALTER TABLE ` + "`t`" + ` ENABLE KEYS */;
UNLOCK TABLES;
DELIMITER ;;
/*!50003 CREATE*/ /*!50017 DEFINER=` + "`root`@`%`" + `*/ /*!50003 TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN SET NEW.a = 1; END */;;
DELIMITER ;
/*!50001 CREATE VIEW ` + "`v`" + ` AS SELECT 1 AS ` + "`a`" + ` */;
-- Dump completed on 2026-01-01  0:00:00
`

// Goal: a dump that ends early is an error. Method: cut a dump after each of its bytes.
func TestTruncated(t *testing.T) {
	if err := newHarness().readText(mysqldumpText); err != nil {
		t.Fatal(err)
	}
	end := strings.Index(mysqldumpText, "-- Dump completed") + len("-- Dump completed")
	begin := strings.Index(mysqldumpText, "\n")
	for n := begin; n < end; n++ {
		err := newHarness().readText(mysqldumpText[:n])
		var place *PlaceError
		if !errors.As(err, &place) || place.File != "dump.sql" || place.Hint == "" {
			t.Fatalf("cut after %d bytes, behind %q: error %v, want one with its place and a hint", n, mysqldumpText[max(0, n-20):n], err)
		}
	}
}

func TestErrorHasItsLine(t *testing.T) {
	err := newHarness().readText("CREATE TABLE t (a int);\n-- x\nINSERT INTO t VALUES\n(1),\n(2),\n(3,4);\n")
	if err == nil || !strings.HasPrefix(err.Error(), "dump.sql:6: ") {
		t.Errorf("error %v, want one of line 6", err)
	}
}

// Goal: the report has each statement that percodb does not run once, and to its end.
func TestLeftOut(t *testing.T) {
	h := newHarness()
	if err := h.readText(mysqldumpText); err != nil {
		t.Fatal(err)
	}
	if list := h.mu.report.LeftOut; len(list) != 1 || !strings.HasPrefix(list[0].What, "TRIGGER (dump.sql:16") || !strings.Contains(list[0].Statement, "SET NEW.a = 1; END") {
		t.Errorf("left out: %+v", list)
	}
}

// oneLine returns an INSERT of one line with n rows.
type oneLine struct {
	rest int
	buf  bytes.Buffer
}

func (l *oneLine) Read(p []byte) (int, error) {
	for l.buf.Len() < len(p) && l.rest >= 0 {
		if l.rest == 0 {
			l.buf.WriteString("(0,'end');")
		} else {
			fmt.Fprintf(&l.buf, "(%d,'%s'),", l.rest, strings.Repeat("x", 1000))
		}
		l.rest--
	}
	return l.buf.Read(p)
}

// Goal: a line of 200 MB takes no more memory than a batch.
func TestMemory(t *testing.T) {
	h := newHarness()
	rows, heap := int64(0), uint64(0)
	h.give = func(_ context.Context, b *batch) error {
		rows += b.rows
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap = max(heap, m.HeapAlloc)
		h.release(b)
		return nil
	}
	in := io.MultiReader(strings.NewReader("CREATE TABLE t (a int, b text);\nINSERT INTO t VALUES "), &oneLine{rest: 200_000})
	if err := h.read(context.Background(), &dumpFile{path: "dump.sql"}, in); err != nil {
		t.Fatal(err)
	}
	if rows != 200_001 {
		t.Errorf("read %d rows", rows)
	}
	if heap > 64<<20 {
		t.Errorf("the heap grew to %d MiB", heap>>20)
	}
}

// Goal: a run that skips a loaded batch cuts the others as the run that has loaded it.
func TestBatchesAreCutAlike(t *testing.T) {
	defer func(n int64) { batchBytes = n }(batchBytes)
	batchBytes = 40
	var text strings.Builder
	text.WriteString("CREATE TABLE t (a int, b text);\nCREATE TABLE u (a int);\n")
	for i := range 50 {
		fmt.Fprintf(&text, "INSERT INTO t VALUES (%d,'%s'),(%d,NULL);\n", i, strings.Repeat("é\\n", i%7), i*i)
		if i%10 == 0 {
			fmt.Fprintf(&text, "INSERT INTO u VALUES (%d);\n", i)
		}
	}
	cut := func(done map[batchKey]bool) (list []string) {
		h := newHarness()
		h.state.done = done
		h.give = func(_ context.Context, b *batch) error {
			list = append(list, fmt.Sprintf("%s %d: %d rows", b.table.label, b.start, b.rows))
			if b.skip != done[batchKey{0, b.start}] || b.skip != (len(b.data) == 0) {
				t.Errorf("batch %d: skip is %v", b.start, b.skip)
			}
			done[batchKey{0, b.start}] = len(list)%3 == 0
			return nil
		}
		if err := h.readText(text.String()); err != nil {
			t.Fatal(err)
		}
		return list
	}
	done := map[batchKey]bool{}
	first, second := cut(done), cut(done)
	if len(first) < 20 || strings.Join(first, "\n") != strings.Join(second, "\n") {
		t.Errorf("first run:\n%s\nsecond run:\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(mysqldumpText)
	f.Add(allValues + "INSERT INTO `t` VALUES (1,b'101',_latin1'a','b',0xff,'2020-01-02','0000-00-00 00:00:00',2,NULL),(1,2,3);")
	f.Add("/*!40101 SET NAMES gbk, @a=@@sql_mode */; USE `d`; CREATE TABLE t (a enum('x','y') CHARACTER SET big5, KEY (a(3))) COMMENT='x'; INSERT INTO d.t (a) VALUES (N'x');")
	f.Fuzz(func(t *testing.T, text string) {
		err := newHarness().readText(text)
		var place *PlaceError
		if err != nil && !errors.As(err, &place) {
			t.Errorf("error without a place: %v", err)
		}
	})
}
