// Package arch holds the floors of ARCHITECTURE.md: who may import whom. The test parses files rather
// than asking `go list`, because go test caches results and does not see what a child process read.
package arch

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/percodb/percodb"

// floors lists the rooms from the bottom up: a room imports rooms of lower floors only.
var floors = [][]string{
	{"internal/invariants", "internal/memory", "tso", "sql/pgerror", "sql/keyword", "percolator/sortrun"},
	{"sql/ast"},
	{"sql/types", "kv/storage", "kv/waitgraph", "readlease", "sql/copyformat"},
	{"sql/builtin", "sql", "kv/mvcc"},
	{"kv", "sql/mysql"},
	{"percolator", "gc"},
	{"catalog"},
	{"rowenc"},
	{"catalog/pgcatalog"},
	{"planner/expr"},
	{"planner"},
	{"executor", "check"},
	{"ddl"},
	{"session"},
	{"server/pgwire"},
	{"server"},
	{"node"},
}

// beside lists rooms that stand beside the floors, with the rooms that alone may import them (tests
// apart).
var beside = map[string][]string{
	"tso/rpc":       {"node", "kv/rpc", "bench/micro"},
	"tso/rpc/tsopb": {"tso/rpc"},
	"kv/rpc":        {"node", "bench/micro"},
	"kv/rpc/kvpb":   {"kv/rpc"},
	"kv/kvtest":     {},
	"gc/rpc":        {"node"},
	"gc/rpc/gcpb":   {"gc/rpc"},

	"readlease/rpc":         {"node"},
	"readlease/rpc/leasepb": {"readlease/rpc"},

	"cmd/percodb": {},

	"bench/tpce/schema":  {"bench/tpce/gen", "bench/tpce/load", "bench/tpce/check", "bench/tpce/txn", "bench/tpce/run", "cmd/percodb"},
	"bench/tpce/gen":     {"bench/tpce/load", "bench/tpce/check", "bench/tpce/txn", "bench/tpce/market", "bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/load":    {"bench/tpce/check", "bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/mix":     {"bench/tpce/txn", "bench/tpce/market", "bench/tpce/journal", "bench/tpce/report", "bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/txn":     {"bench/tpce/market", "bench/tpce/run", "cmd/percodb"},
	"bench/tpce/market":  {"bench/tpce/run"},
	"bench/tpce/journal": {"bench/tpce/check", "bench/tpce/run", "cmd/percodb"},
	"bench/tpce/usage":   {"bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/report":  {"bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/run":     {"bench/scale", "cmd/percodb"},
	"bench/scale":        {"cmd/percodb"},
	"bench/tpce/check":   {"cmd/percodb"},
	"test/sqllogic":      {"cmd/percodb"},
	"mysqlimport":        {"cmd/percodb"},
}

// forbidden: beyond the floors, room → prefixes it must not import.
var forbidden = map[string][]string{
	"planner":      {"percolator", "kv"},
	"percolator":   {"sql"},
	"gc":           {"sql"},
	"kv/waitgraph": {"sql"},
	"kv":           {"sql"},
	"kv/mvcc":      {"sql"},
	"kv/storage":   {"sql"},
	"kv/rpc":       {"sql"},
	"tso":          {"sql"},
	"readlease":    {"sql"},
}

// owners: packages of others that one or a few rooms alone may import, tests apart.
var owners = map[string][]string{
	"github.com/cockroachdb/pebble":      {"kv/storage", "bench/micro"},
	"github.com/pingcap/tidb/pkg/parser": {"sql/mysql"},
	"google.golang.org/grpc":             {"kv/rpc", "kv/rpc/kvpb", "tso/rpc", "tso/rpc/tsopb", "gc/rpc", "gc/rpc/gcpb", "readlease/rpc", "readlease/rpc/leasepb"},
	"github.com/jackc/pgx/v5/pgproto3":   {"server/pgwire", "test/sqllogic"},
}

// source is one file's imports.
type source struct {
	path, room string
	imports    []string
}

// sources parses the imports of every Go file of the module that is not a test.
func sources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var all []source
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		s := source{path: rel, room: filepath.ToSlash(filepath.Dir(rel))}
		for _, imp := range file.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, name)
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Fatalf("found only %d source files: is the test looking in the right place?", len(all))
	}
	return all
}

func floorOf(room string) int {
	for i, rooms := range floors {
		if slices.Contains(rooms, room) {
			return i
		}
	}
	return -1
}

// within reports whether path is the package prefix or lies below it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// TestImportsPointDown holds the floors.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		here := floorOf(s.room)
		for _, imp := range s.imports {
			room, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			if allowed, ok := beside[room]; ok && !slices.Contains(allowed, s.room) {
				t.Errorf("%s imports %s, which only %v may", s.path, room, allowed)
			}
			if _, listed := beside[room]; !listed && within(room, "test") && !within(s.room, "test") {
				t.Errorf("%s imports %s: what tests use is of no use to others", s.path, room)
			}
			if there := floorOf(room); here >= 0 && there >= here {
				t.Errorf("%s imports %s: imports point down, and %s is on floor %d, %s on %d", s.path, room, s.room, here, room, there)
			}
			for _, prefix := range forbidden[s.room] {
				if within(room, prefix) {
					t.Errorf("%s imports %s: %s must know nothing of %s", s.path, room, s.room, prefix)
				}
			}
		}
	}
}

// TestEveryRoomHasAFloor: a new room must say where it stands.
func TestEveryRoomHasAFloor(t *testing.T) {
	for _, s := range sources(t) {
		if _, ok := beside[s.room]; ok || floorOf(s.room) >= 0 {
			continue
		}
		if within(s.room, "bench") || within(s.room, "examples") || within(s.room, "test") || within(s.room, "internal") {
			continue
		}
		t.Errorf("%s: room %s stands on no floor", s.path, s.room)
	}
}

// TestOwners: each foreign package has its one room.
func TestOwners(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			for prefix, rooms := range owners {
				if within(imp, prefix) && !slices.Contains(rooms, s.room) && !within(s.room, "examples") {
					t.Errorf("%s imports %s, which only %v may", s.path, imp, rooms)
				}
			}
		}
	}
}

// wordList is a table of PostgreSQL's key words, one a line.
const wordList = "sql/keyword/words.go"

// maxLines is where a file is split, or says at its top why not.
const maxLines = 800

// TestFilesAreShort holds the length of files, generated ones apart.
func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, ".pb.go") || s.path == wordList {
			continue
		}
		f, err := os.Open(filepath.Join("..", "..", s.path))
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		for scanner := bufio.NewScanner(f); scanner.Scan(); {
			lines++
		}
		f.Close()
		if lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", s.path, lines, maxLines)
		}
	}
}

// TestPackagesAreDocumented: every package has a comment.
func TestPackagesAreDocumented(t *testing.T) {
	documented, rooms := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		rooms[s.room] = true
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", s.path), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil && len(file.Doc.Text()) > 40 {
			documented[s.room] = true
		}
	}
	for room := range rooms {
		if !documented[room] {
			t.Errorf("package %s has no comment", room)
		}
	}
}

// mdLink finds relative links of ARCHITECTURE.md.
var mdLink = regexp.MustCompile(`\]\(([a-z][^)#:]*)\)`)

// TestArchitectureIsTrue: every path that ARCHITECTURE.md names exists.
func TestArchitectureIsTrue(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	links := mdLink.FindAllStringSubmatch(string(text), -1)
	if len(links) < 20 {
		t.Fatalf("found only %d links", len(links))
	}
	for _, link := range links {
		if _, err := os.Stat(filepath.Join("..", "..", link[1])); err != nil {
			t.Errorf("ARCHITECTURE.md names %s: %v", link[1], err)
		}
	}
}
