// Package pgquery compares percodb's parser with PostgreSQL's own, as the library libpg_query has it (of PostgreSQL 16). It is
// a module of its own: the library needs a C compiler. What is accepted by both is printed from percodb's tree, and
// must have the fingerprint of the original. Where only one accepts a statement a PostgreSQL 15 server decides, if
// PERCODB_TEST_PG_DSN names one.
//
//	PERCODB_TEST_CORPORA=DIR[:DIR…] go test . -v
//	go test . -run Mutants -mutants 100000 -v
package pgquery

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/pgerror"
)

// outcome classes of a statement.
const (
	same      = "same tree"
	refused   = "refused by both"
	strict    = "refused by percodb only"
	lenient   = "accepted by percodb only"
	different = "another fingerprint"
	unparsed  = "printed text is refused"
	version   = "PostgreSQL 15 decides otherwise than 16"
)

type oracle struct {
	t      *testing.T
	server *pgconn.PgConn
	counts map[string]int
	shown  map[string][]string
}

func newOracle(t *testing.T) *oracle {
	o := &oracle{t: t, counts: map[string]int{}, shown: map[string][]string{}}
	if dsn := os.Getenv("PERCODB_TEST_PG_DSN"); dsn != "" {
		conn, err := pgconn.Connect(context.Background(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		o.server = conn
	}
	return o
}

// serverAccepts reports whether PostgreSQL 15's grammar accepts a statement.
func (o *oracle) serverAccepts(text string) bool {
	_, err := o.server.Prepare(context.Background(), "", text, nil)
	var e *pgconn.PgError
	return err == nil || errors.As(err, &e) && !(e.Code == "42601" && grammarMessage(e.Message))
}

// grammarMessage reports whether a message is one of PostgreSQL 15's scanner or grammar.
func grammarMessage(m string) bool {
	return strings.Contains(m, "at or near") || strings.Contains(m, "at end of input") ||
		m == "subquery in FROM must have an alias" || m == "VALUES in FROM must have an alias"
}

func (o *oracle) add(text string) {
	class, detail := o.judge(text)
	o.counts[class]++
	if class != same && class != refused && len(o.shown[class]) < 400 {
		o.shown[class] = append(o.shown[class], detail)
	}
}

func (o *oracle) judge(text string) (class, detail string) {
	want, theirs := pg.Fingerprint(text)
	node, ours := sql.ParseTree(text)
	var e *pgerror.Error
	grammar := ours != nil && errors.As(ours, &e) && (e.Code == pgerror.SyntaxError || e.Code == pgerror.FeatureNotSupported)
	switch {
	case theirs != nil && ours != nil:
		return refused, ""
	case theirs != nil:
		if o.server != nil && o.serverAccepts(text) {
			return version, text
		}
		return lenient, fmt.Sprintf("%s\n    %v", text, theirs)
	case ours != nil:
		if o.server != nil && grammar && !o.serverAccepts(text) {
			return refused, ""
		}
		return strict, fmt.Sprintf("%v\n    %s", ours, text)
	}
	printed := node.String()
	got, err := pg.Fingerprint(printed)
	switch {
	case err != nil:
		return unparsed, fmt.Sprintf("%v\n    %s\n    %s", err, text, printed)
	case got != want:
		return different, fmt.Sprintf("%s\n    %s", text, printed)
	}
	return same, ""
}

func (o *oracle) report(name string) {
	o.t.Helper()
	classes := make([]string, 0, len(o.counts))
	total := 0
	for class, n := range o.counts {
		classes = append(classes, class)
		total += n
	}
	sort.Strings(classes)
	for _, class := range classes {
		o.t.Logf("%s: %6d of %d %s", name, o.counts[class], total, class)
	}
	for _, class := range classes {
		for _, detail := range o.shown[class] {
			if class == version {
				continue
			}
			o.t.Errorf("%s: %s", class, detail)
		}
	}
}

// statements splits a script by percodb's lexer, without psql's commands and the data of COPY.
func statements(script string, each func(string)) {
	lexer := sql.NewLexer()
	lexer.Reset(script)
	for {
		st, err := lexer.Next()
		if err != nil {
			if err != io.EOF {
				each(script)
			}
			return
		}
		each(strings.Clone(st.Text))
	}
}

var (
	metaCommand = regexp.MustCompile(`(?m)^\s*\\.*$`)
	copyData    = regexp.MustCompile(`(?ims)^(copy\b[^;]*\bfrom\s+stdin[^;]*;)[^\n]*\n.*?^\\\.$`)
	goose       = regexp.MustCompile(`(?m)^-- \+.*$`)
)

func (o *oracle) addScript(script string) {
	script = copyData.ReplaceAllString(script, "$1")
	script = metaCommand.ReplaceAllString(script, "")
	statements(script, o.add)
}

// eachSLT gives the statements and queries of a sqllogictest file.
func eachSLT(text string, each func(string)) {
	for _, record := range strings.Split(strings.ReplaceAll(text, "\r", ""), "\n\n") {
		lines := strings.Split(record, "\n")
		for len(lines) > 0 && (strings.HasPrefix(lines[0], "#") || strings.HasPrefix(lines[0], "skipif") || strings.HasPrefix(lines[0], "onlyif") || lines[0] == "") {
			lines = lines[1:]
		}
		if len(lines) < 2 || !strings.HasPrefix(lines[0], "statement ok") && !strings.HasPrefix(lines[0], "query") {
			continue
		}
		body := strings.Join(lines[1:], "\n")
		body, _, _ = strings.Cut(body, "\n----")
		statements(body, each)
	}
}

func (o *oracle) addFile(path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		o.t.Fatal(err)
	}
	name := path
	if strings.HasSuffix(name, ".gz") {
		name = strings.TrimSuffix(name, ".gz")
		f, _ := os.Open(path)
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			o.t.Fatal(err)
		}
		if data, err = io.ReadAll(z); err != nil {
			o.t.Fatal(err)
		}
	}
	switch filepath.Ext(name) {
	case ".sql":
		o.addScript(goose.ReplaceAllString(string(data), ""))
	case ".slt", ".test":
		eachSLT(string(data), o.add)
	}
}

func TestOwnStatements(t *testing.T) {
	o := newOracle(t)
	seeds, err := os.ReadFile("../../sql/testdata/seeds.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range strings.Split(strings.TrimSpace(string(seeds)), "\n") {
		o.add(seed)
	}
	files, err := filepath.Glob("../sqllogic/testdata/*.slt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		o.addFile(file)
	}
	o.report("own")
}

func TestCorpora(t *testing.T) {
	dirs := os.Getenv("PERCODB_TEST_CORPORA")
	if dirs == "" {
		t.Skip("set PERCODB_TEST_CORPORA to directories with .sql, .slt or .test files")
	}
	for _, dir := range strings.Split(dirs, ":") {
		o := newOracle(t)
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				o.addFile(path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		o.report(filepath.Base(dir))
	}
}
