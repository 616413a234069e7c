// Package arch tests the structure that ARCHITECTURE.md describes: which package may import which. The tests parse files
// and do not run `go list`, because go test caches results and does not track what a child process reads.
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

// layers lists the packages from the lowest layer up: a package imports packages of lower layers only.
var layers = [][]string{
	{"internal/errkind", "internal/plural", "internal/tlsfiles", "audit"},
	{"internal/invariants", "internal/memory", "internal/keypack", "tso", "sql/pgerror", "sql/keyword", "percolator/sortrun", "auth/verifier"},
	{"sql/types/jsonb", "sql/are", "sql/pgdata", "sql/types/tsearch", "sql/tsparser", "sql/snowball", "sql/pgcrypto", "sql/collation"},
	{"sql/ast", "sql/types/jsonpath", "sql/textsearch", "percolator/ack", "auth", "catalog/acl"},
	{"sql/types", "kv/storage", "kv/waitgraph", "readlease", "notify", "sql/copyformat"},
	{"sql/pghash"},
	{"sql/builtin", "sql", "kv/mvcc"},
	{"kv", "sql/mysql"},
	{"percolator", "gc"},
	{"catalog", "percolator/observe"},
	{"rowenc", "advisory"},
	{"inverted", "partition"},
	{"catalog/pgcatalog"},
	{"planner/expr"},
	{"planner"},
	{"entries"},
	{"executor", "check", "plpgsql"},
	{"ddl", "session/settings"},
	{"session"},
	{"server/pgwire", "observer"},
	{"server"},
	{"node"},
}

// outside lists the packages outside the layers, with the only packages that may import them (tests
// apart).
var outside = map[string][]string{
	"tso/rpc":       {"node", "kv/rpc", "bench/micro"},
	"tso/rpc/tsopb": {"tso/rpc"},
	"kv/rpc":        {"node", "bench/micro"},
	"kv/rpc/kvpb":   {"kv/rpc"},
	"kv/kvtest":     {},
	"kv/bigtable":   {"node", "cmd/percodb", "bench/bigtable", "test/kill", "test/sim"},
	"gc/rpc":        {"node"},
	"gc/rpc/gcpb":   {"gc/rpc"},

	"kv/bigtable/widerow": {"kv/bigtable", "test/sim"},

	"readlease/rpc":         {"node"},
	"readlease/rpc/leasepb": {"readlease/rpc"},
	"notify/rpc":            {"node"},
	"notify/rpc/notifypb":   {"notify/rpc"},

	"cmd/percodb":     {},
	"client/observer": {"examples/orders"},

	"bench/tpce/schema":   {"bench/tpce/gen", "bench/tpce/load", "bench/tpce/check", "bench/tpce/txn", "bench/tpce/run", "cmd/percodb"},
	"bench/tpce/gen":      {"bench/bigtable", "bench/tpce/load", "bench/tpce/check", "bench/tpce/txn", "bench/tpce/market", "bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/load":     {"bench/bigtable", "bench/tpce/check", "bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/mix":      {"bench/bigtable", "bench/tpce/txn", "bench/tpce/market", "bench/tpce/journal", "bench/tpce/report", "bench/tpce/run", "bench/scale", "cmd/percodb"},
	"bench/tpce/txn":      {"bench/bigtable", "bench/tpce/market", "bench/tpce/run", "cmd/percodb"},
	"bench/tpce/market":   {"bench/tpce/run"},
	"bench/tpce/journal":  {"bench/tpce/check", "bench/tpce/run", "cmd/percodb"},
	"bench/tpce/usage":    {"bench/bigtable", "bench/tpce/run", "bench/scale", "bench/observers", "cmd/percodb"},
	"bench/tpce/report":   {"bench/bigtable", "bench/tpce/run", "bench/scale", "bench/observers", "bench/crawl", "cmd/percodb"},
	"bench/tpce/run":      {"bench/scale", "cmd/percodb"},
	"bench/scale":         {"cmd/percodb"},
	"bench/observers":     {"cmd/percodb"},
	"bench/crawl":         {"cmd/percodb"},
	"bench/tpce/check":    {"cmd/percodb"},
	"test/sqllogic":       {"cmd/percodb"},
	"internal/certs":      {"tso/rpc", "node", "cmd/percodb", "test/kill"},
	"internal/storetest":  {},
	"internal/faultproxy": {"test/kill"},
	"internal/process":    {"bench/bigtable", "bench/scale", "test/kill"},
	"internal/loading":    {"mysqlimport", "copydb", "bench/tpce/load", "bench/scale"},
	"mysqlimport":         {"cmd/percodb"},
	"copydb":              {"cmd/percodb"},

	"sql/pgdata/generate": {},
}

// forbidden lists imports that the layers would permit: package → prefixes it must not import.
var forbidden = map[string][]string{
	"planner":            {"percolator", "kv"},
	"percolator":         {"sql"},
	"percolator/observe": {"sql"},
	"gc":                 {"sql"},
	"kv/waitgraph":       {"sql"},
	"kv":                 {"sql"},
	"kv/mvcc":            {"sql"},
	"kv/storage":         {"sql"},
	"kv/rpc":             {"sql"},
	"kv/bigtable":        {"sql"},
	"tso":                {"sql"},
	"readlease":          {"sql"},
	"notify":             {"sql"},
}

// owners lists foreign packages with the only packages that may import them, tests apart.
var owners = map[string][]string{
	"github.com/cockroachdb/pebble":      {"kv/storage", "bench/micro"},
	"github.com/pingcap/tidb/pkg/parser": {"sql/mysql"},
	"google.golang.org/grpc":             {"kv/bigtable", "kv/rpc", "kv/rpc/kvpb", "tso/rpc", "tso/rpc/tsopb", "gc/rpc", "gc/rpc/gcpb", "readlease/rpc", "readlease/rpc/leasepb", "notify/rpc", "notify/rpc/notifypb", "internal/faultproxy"},
	"github.com/jackc/pgx/v5/pgproto3":   {"server/pgwire", "test/sqllogic"},
	"cloud.google.com/go/bigtable":       {"kv/bigtable", "kv/bigtable/widerow", "bench/bigtable"},
}

// source is one file's imports.
type source struct {
	path, pkg string
	imports   []string
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
		s := source{path: rel, pkg: filepath.ToSlash(filepath.Dir(rel))}
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

func layerOf(pkg string) int {
	for i, pkgs := range layers {
		if slices.Contains(pkgs, pkg) {
			return i
		}
	}
	return -1
}

// within reports whether path is the package prefix or lies below it.
func within(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// TestImportsPointDown checks that every import is of a lower layer.
func TestImportsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		here := layerOf(s.pkg)
		for _, imp := range s.imports {
			pkg, ours := strings.CutPrefix(imp, module+"/")
			if !ours {
				continue
			}
			if allowed, ok := outside[pkg]; ok && !slices.Contains(allowed, s.pkg) {
				t.Errorf("%s imports %s, which only %v may", s.path, pkg, allowed)
			}
			if _, listed := outside[pkg]; !listed && within(pkg, "test") && !within(s.pkg, "test") {
				t.Errorf("%s imports %s, which is for tests only", s.path, pkg)
			}
			if there := layerOf(pkg); here >= 0 && there >= here {
				t.Errorf("%s imports %s: imports point down, and %s is in layer %d, %s in %d", s.path, pkg, s.pkg, here, pkg, there)
			}
			for _, prefix := range forbidden[s.pkg] {
				if within(pkg, prefix) {
					t.Errorf("%s imports %s: %s must not depend on %s", s.path, pkg, s.pkg, prefix)
				}
			}
		}
	}
}

// TestEveryPackageHasALayer: a new package is added to layers or to outside.
func TestEveryPackageHasALayer(t *testing.T) {
	for _, s := range sources(t) {
		if _, ok := outside[s.pkg]; ok || layerOf(s.pkg) >= 0 {
			continue
		}
		if within(s.pkg, "bench") || within(s.pkg, "examples") || within(s.pkg, "test") || within(s.pkg, "internal") {
			continue
		}
		t.Errorf("%s: package %s is in no layer", s.path, s.pkg)
	}
}

// TestOwners: a foreign package is imported by its owners only.
func TestOwners(t *testing.T) {
	for _, s := range sources(t) {
		for _, imp := range s.imports {
			for prefix, pkgs := range owners {
				if within(imp, prefix) && !slices.Contains(pkgs, s.pkg) && !within(s.pkg, "examples") {
					t.Errorf("%s imports %s, which only %v may", s.path, imp, pkgs)
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
		if s.path == wordList {
			continue
		}
		f, err := os.Open(filepath.Join("..", "..", s.path))
		if err != nil {
			t.Fatal(err)
		}
		lines, generated := 0, false
		for scanner := bufio.NewScanner(f); scanner.Scan(); {
			lines++
			generated = generated || strings.HasPrefix(scanner.Text(), "// Code generated ")
		}
		f.Close()
		if lines > maxLines && !generated {
			t.Errorf("%s has %d lines, more than %d", s.path, lines, maxLines)
		}
	}
}

// TestPackagesAreDocumented: every package has a comment.
func TestPackagesAreDocumented(t *testing.T) {
	documented, pkgs := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		pkgs[s.pkg] = true
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", s.path), nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc != nil && len(file.Doc.Text()) > 40 {
			documented[s.pkg] = true
		}
	}
	for pkg := range pkgs {
		if !documented[pkg] {
			t.Errorf("package %s has no comment", pkg)
		}
	}
}

// mdLink finds relative links of ARCHITECTURE.md.
var mdLink = regexp.MustCompile(`\]\(([a-z][^)#:]*)\)`)

// TestArchitectureIsTrue: every path that ARCHITECTURE.md names exists, and it names every package.
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
	for _, s := range sources(t) {
		if !within(s.pkg, "examples") && !strings.Contains(string(text), "]("+s.pkg+")") {
			t.Errorf("%s: ARCHITECTURE.md does not list package %s", s.path, s.pkg)
		}
	}
}
