package sqllogic

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
)

// fakeServer answers simple queries as answer specifies, over the real protocol. It simulates faults: no answer, a lost
// connection.
type fakeServer struct {
	t        *testing.T
	listener net.Listener
	answer   func(sql string) fakeAnswer

	mu  sync.Mutex
	log []string // the queries, in order
}

type fakeAnswer struct {
	rows   [][]string // each row's values; nil is no result
	oids   []uint32   // default text
	tag    string
	code   string        // an error with this SQLSTATE
	hangUp bool          // close the connection in place of an answer
	sleep  time.Duration // before the answer
}

func newFakeServer(t *testing.T, answer func(sql string) fakeAnswer) *fakeServer {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeServer{t: t, listener: listener, answer: answer}
	var clients sync.WaitGroup
	clients.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			clients.Go(func() {
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		clients.Wait()
	})
	return s
}

func (s *fakeServer) dsn() string {
	return "postgres://u@" + s.listener.Addr().String() + "/db?sslmode=disable"
}

func (s *fakeServer) queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

func (s *fakeServer) serve(conn net.Conn) {
	backend := pgproto3.NewBackend(conn, conn)
	if _, err := backend.ReceiveStartupMessage(); err != nil {
		return
	}
	backend.Send(&pgproto3.AuthenticationOk{})
	for {
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		if backend.Flush() != nil {
			return
		}
		message, err := backend.Receive()
		if err != nil {
			return
		}
		query, ok := message.(*pgproto3.Query)
		if !ok {
			return
		}
		s.mu.Lock()
		s.log = append(s.log, query.String)
		s.mu.Unlock()
		answer := s.answer(query.String)
		time.Sleep(answer.sleep) // the server's answer is slow
		if answer.hangUp {
			return
		}
		s.send(backend, answer)
	}
}

func (s *fakeServer) send(backend *pgproto3.Backend, a fakeAnswer) {
	if a.code != "" {
		backend.Send(&pgproto3.ErrorResponse{Severity: "ERROR", Code: a.code, Message: "as asked"})
		return
	}
	if a.rows != nil {
		var d pgproto3.RowDescription
		for i := range a.rows[0] {
			field := pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: 25}
			if a.oids != nil {
				field.DataTypeOID = a.oids[i]
			}
			d.Fields = append(d.Fields, field)
		}
		backend.Send(&d)
		for _, row := range a.rows {
			var m pgproto3.DataRow
			for _, v := range row {
				m.Values = append(m.Values, []byte(v))
			}
			backend.Send(&m)
		}
	}
	backend.Send(&pgproto3.CommandComplete{CommandTag: []byte(a.tag)})
}

// write puts a test file into a new directory and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.slt")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const mixedFile = `statement ok
CREATE TABLE t(a int)

statement ok
FAIL 42601

statement error
FAIL 42601

statement error 23505
FAIL 23505

statement error 23505
FAIL 42601

statement error
SELECT one

query I
SELECT one
----
1

query I
SELECT one
----
2

query II
SELECT one
----
1
1

query I
FAIL 42601
----
1

query I nosort same
SELECT one
----
1

query I nosort same
SELECT two
----
2

statement count 3
DELETE 3

statement count 4
DELETE 3

onlyif sqlite
statement ok
NEVER SENT

statement ok
EXCLUDED

query I
NO ROWS
----

onlyif sqlite
halt

halt

statement ok
AFTER HALT
`

func mixedAnswer(sql string) fakeAnswer {
	switch {
	case strings.HasPrefix(sql, "FAIL "):
		return fakeAnswer{code: sql[5:]}
	case sql == "SELECT one":
		return fakeAnswer{rows: [][]string{{"1"}}, tag: "SELECT 1"}
	case sql == "SELECT two":
		return fakeAnswer{rows: [][]string{{"2"}}, tag: "SELECT 1"}
	case sql == "DELETE 3":
		return fakeAnswer{tag: "DELETE 3"}
	}
	return fakeAnswer{tag: "OK"}
}

// Goal: each record is checked as its file says, counted once, and reported with its line; skipped records are not
// sent. Method: one file with a passing and a failing record of each kind, against a scripted server.
func TestRunChecksRecords(t *testing.T) {
	server := newFakeServer(t, mixedAnswer)
	path := write(t, mixedFile)
	exclude := write(t, "# records to skip\n"+path+":60\n")
	var out bytes.Buffer
	summary, err := Run(context.Background(), Options{URL: server.dsn(), Paths: []string{path}, Exclude: exclude, Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	summary.Elapsed = 0
	if want := (Summary{Files: 1, Passed: 6, Failed: 9, Skipped: 2}); summary != want {
		t.Errorf("summary %+v, want %+v\n%s", summary, want, out.String())
	}
	for _, line := range []string{":4\n", ":13\n", ":16\n", ":24\n", ":29\n", ":35\n", ":45\n", ":53\n", ":63\n"} {
		if !strings.Contains(out.String(), path+line) {
			t.Errorf("no failure is reported at %s", strings.TrimSpace(line))
		}
	}
	if !strings.Contains(out.String(), "expected: the same values as line 40, which has the same label same") {
		t.Errorf("the label's first use is not named:\n%s", out.String())
	}
	log := strings.Join(server.queries(), "\n")
	for _, sql := range []string{"NEVER SENT", "EXCLUDED", "AFTER HALT"} {
		if strings.Contains(log, sql) {
			t.Errorf("%s was sent", sql)
		}
	}
	const drop = "DROP TABLE IF EXISTS t CASCADE"
	if !strings.HasPrefix(log, drop+"\n") || !strings.HasSuffix(log, "\n"+drop) {
		t.Errorf("the table is not dropped before and after:\n%s", log)
	}
}

func TestRunMaxFailures(t *testing.T) {
	server := newFakeServer(t, func(string) fakeAnswer { return fakeAnswer{code: "XX000"} })
	path := write(t, strings.Repeat("statement ok\nSELECT 1\n\n", 10))
	summary, err := Run(context.Background(), Options{URL: server.dsn(), Paths: []string{path}, MaxFailures: 3})
	if err != nil || summary.Failed != 3 || len(server.queries()) != 3 {
		t.Errorf("%+v, %v after %d queries", summary, err, len(server.queries()))
	}
}

// Goal: a server that stops ends the run with one failure and one clear error. Method: the server closes its listener
// and the connection during the first of many records.
func TestRunServerDies(t *testing.T) {
	var server *fakeServer
	server = newFakeServer(t, func(string) fakeAnswer {
		_ = server.listener.Close()
		return fakeAnswer{hangUp: true}
	})
	path := write(t, strings.Repeat("statement ok\nSELECT 1\n\n", 100))
	var out bytes.Buffer
	summary, err := Run(context.Background(), Options{URL: server.dsn(), Paths: []string{path}, Out: &out})
	if err == nil || !strings.Contains(err.Error(), path+":1: the server went away") {
		t.Errorf("error: %v", err)
	}
	if summary.Failed != 1 || summary.Passed != 0 {
		t.Errorf("%+v\n%s", summary, out.String())
	}
}

// Goal: a connection lost while the server runs, and a record without an answer, are one failure each; the file
// continues on a new connection.
func TestRunConnectionLost(t *testing.T) {
	server := newFakeServer(t, func(sql string) fakeAnswer {
		switch sql {
		case "HANG UP":
			return fakeAnswer{hangUp: true}
		case "SLEEP":
			return fakeAnswer{sleep: time.Second}
		}
		return fakeAnswer{tag: "OK"}
	})
	path := write(t, "statement ok\nHANG UP\n\nstatement ok\nA\n\nstatement ok\nSLEEP\n\nstatement ok\nB\n")
	var out bytes.Buffer
	summary, err := Run(context.Background(), Options{
		URL: server.dsn(), Paths: []string{path}, Out: &out, RecordTimeout: 200 * time.Millisecond,
	})
	if err != nil || summary.Passed != 2 || summary.Failed != 2 {
		t.Errorf("%+v, %v\n%s", summary, err, out.String())
	}
	if !strings.Contains(out.String(), "no answer within 200ms") {
		t.Errorf("the timeout is not named:\n%s", out.String())
	}
}

// Goal: the end of the context ends a run that waits for an answer.
func TestRunCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	server := newFakeServer(t, func(string) fakeAnswer {
		cancel()
		return fakeAnswer{sleep: 100 * time.Millisecond}
	})
	path := write(t, strings.Repeat("statement ok\nSELECT 1\n\n", 3))
	_, err := Run(ctx, Options{URL: server.dsn(), Paths: []string{path}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

// Goal: the rewriter replaces results, SQLSTATEs, counts and letters, and leaves everything else, and failed records,
// unchanged. Method: a file before and after; a second run changes nothing and passes.
func TestRewrite(t *testing.T) {
	server := newFakeServer(t, func(sql string) fakeAnswer {
		switch sql {
		case "SELECT two columns":
			return fakeAnswer{rows: [][]string{{"2", "b"}, {"1", "a"}}, oids: []uint32{23, 25}, tag: "SELECT 2"}
		case "SELECT one column":
			return fakeAnswer{rows: [][]string{{"x"}, {"y"}, {"z"}}, tag: "SELECT 3"}
		}
		return mixedAnswer(sql)
	})
	path := write(t, `# head
control resultmode rowwise

query ? rowsort
SELECT two columns

# kept
statement error
FAIL 23505

statement error 42601
FAIL 23514

statement count 0
DELETE 3

statement ok
FAIL 42601

control resultmode valuewise

hash-threshold 2

query T
SELECT one column
----
old

hash-threshold 3

query T
SELECT one column
----
old
older
`)
	const want = `# head
control resultmode rowwise

query IT rowsort
SELECT two columns
----
1 | a
2 | b

# kept
statement error 23505
FAIL 23505

statement error 23514
FAIL 23514

statement count 3
DELETE 3

statement ok
FAIL 42601

control resultmode valuewise

hash-threshold 2

query T
SELECT one column
----
3 values hashing to 5c37d4d5cc8d74de8ed81fc394a56c0e

hash-threshold 3

query T
SELECT one column
----
x
y
z
`
	for range 2 {
		summary, err := Run(context.Background(), Options{URL: server.dsn(), Paths: []string{path}, Rewrite: true})
		if err != nil || summary.Failed != 1 || summary.Passed != 6 {
			t.Fatalf("%+v, %v", summary, err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("rewritten to:\n%s", got)
		}
	}
	summary, err := Run(context.Background(), Options{URL: server.dsn(), Paths: []string{path}})
	if err != nil || summary.Failed != 1 || summary.Passed != 6 {
		t.Errorf("%+v, %v", summary, err)
	}
}

// Goal: files are found by list and root, in directories, and compressed; a missing file is an error. Method: a small
// copy of the corpus' layout.
func TestFindFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"list", "root/a.test", "root/deep/b.test.gz", "root/deep/c.slt", "root/readme.md"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("# comment\ndeep/b.test\n\na.test\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := findFiles(Options{List: filepath.Join(dir, "list"), Root: filepath.Join(dir, "root")})
	if err != nil || len(files) != 2 || files[0].name != "deep/b.test" || !strings.HasSuffix(files[0].path, "b.test.gz") || files[1].name != "a.test" {
		t.Errorf("by list: %+v, %v", files, err)
	}
	files, err = findFiles(Options{Paths: []string{filepath.Join(dir, "root")}})
	if err != nil || len(files) != 3 {
		t.Errorf("by directory: %+v, %v", files, err)
	}
	for _, o := range []Options{{}, {Paths: []string{dir + "/nope"}}, {List: dir + "/nope"}, {List: filepath.Join(dir, "list"), Root: dir}} {
		if files, err := findFiles(o); err == nil {
			t.Errorf("%+v finds %+v", o, files)
		}
	}
}
