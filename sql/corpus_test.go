package sql

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// The goal: SQL that real programs send is understood. The method: corpora outside of the repository,
// named by environment variables, are parsed, printed and parsed again; the tests are skipped without.

// corpusDir finds a corpus or skips the test.
func corpusDir(t *testing.T, env string) string {
	dir := os.Getenv(env)
	if dir == "" {
		t.Skipf("set %s to a directory with the corpus to run this test", env)
	}
	return dir
}

// rate counts what became of a corpus's statements.
type rate struct {
	parsed, unsupported, refused int
	leftovers                    map[string]int
}

func (r *rate) add(t *testing.T, text string, node ast.Statement, err error) {
	if r.leftovers == nil {
		r.leftovers = map[string]int{}
	}
	var e *pgerror.Error
	switch {
	case err == nil:
		r.parsed++
		checkRoundTrip(t, text, node)
	case errors.As(err, &e) && e.Code == pgerror.FeatureNotSupported:
		r.unsupported++
		r.leftovers["0A000 "+e.Message]++
	default:
		r.refused++
		r.leftovers[fmt.Sprintf("%v: %.120s", err, text)]++
	}
}

func (r *rate) report(t *testing.T, name string) {
	total := r.parsed + r.unsupported + r.refused
	t.Logf("%s: %d statements, %d parsed (%.2f %%), %d refused as unsupported, %d as syntax", name, total, r.parsed,
		100*float64(r.parsed)/float64(max(total, 1)), r.unsupported, r.refused)
	const most = 100
	for what, n := range r.leftovers {
		if len(r.leftovers) <= most || n > 1 {
			t.Logf("  %d × %s", n, what)
		}
	}
}

// addText parses a text of one or more statements.
func (r *rate) addText(t *testing.T, text string) {
	lexer := NewLexer()
	lexer.Reset(text)
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			r.add(t, text, nil, err)
			return
		}
		node, err := Parse(st, nil)
		r.add(t, st.Text, node, err)
	}
}

// TestClientCorpus parses the SQL recorded from client libraries: files of statements under headings
// "-- [Q]" and "-- [P]".
func TestClientCorpus(t *testing.T) {
	dir := corpusDir(t, "PERCODB_TEST_CLIENT_SQL")
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no corpus in %s: %v", dir, err)
	}
	var all rate
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(data), "\n-- [P]", "\n-- [Q]")
		for _, block := range strings.Split(text, "\n-- [Q]")[1:] {
			all.addText(t, block)
		}
	}
	all.report(t, "client SQL")
	if accepted := all.parsed + all.unsupported; accepted*100 < (accepted+all.refused)*97 {
		t.Errorf("only %d of %d statements are accepted", accepted, accepted+all.refused)
	}
}

// TestSQLLogicCorpus parses the statements of sqllogictest files (*.slt, *.test, *.test.gz): the
// project's own, and those of a directory.
func TestSQLLogicCorpus(t *testing.T) {
	dirs := []string{"../test/sqllogic/testdata"}
	if dir := os.Getenv("PERCODB_TEST_SQLLOGIC"); dir != "" {
		dirs = append(dirs, dir)
	}
	for _, dir := range dirs {
		var all rate
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, ".test") && !strings.HasSuffix(path, ".slt") {
				return err
			}
			return eachRecord(path, 400, func(sql string) { all.addText(t, sql) })
		})
		if err != nil {
			t.Fatal(err)
		}
		all.report(t, dir)
		if all.refused*1000 > all.parsed {
			t.Errorf("%d statements are refused", all.refused)
		}
	}
}

// eachRecord calls fn with the SQL of the first records of a sqllogictest file that expect no error and
// are for PostgreSQL.
func eachRecord(path string, limit int, fn func(string)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return err
		}
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<24)
	skip := false
	for limit > 0 && scan.Scan() {
		line := scan.Text()
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "skipif":
			skip = skip || strings.HasPrefix(rest, "postgresql")
			continue
		case "onlyif":
			skip = skip || !strings.HasPrefix(rest, "postgresql")
			continue
		case "query", "statement":
			var sql []string
			for scan.Scan() && scan.Text() != "" && scan.Text() != "----" {
				sql = append(sql, scan.Text())
			}
			if !skip && !strings.HasPrefix(rest, "error") {
				fn(strings.Join(sql, "\n"))
				limit--
			}
		}
		skip = false
	}
	return scan.Err()
}
