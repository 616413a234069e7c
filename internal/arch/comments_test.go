package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// comment is one comment group of a Go file.
type comment struct {
	file, dir string // slash-separated, relative to the repository
	line      int
	text      string
}

// goComments parses all Go files of the repository. It returns their comments, all identifiers in their code, and the
// declarations of each package by its name: functions, types, variables, methods, fields.
func goComments(t *testing.T) (comments []comment, idents map[string]bool, decls map[string]map[string]bool) {
	t.Helper()
	root := filepath.Join("..", "..")
	idents, decls = map[string]bool{}, map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		pkg := strings.TrimSuffix(file.Name.Name, "_test")
		if decls[pkg] == nil {
			decls[pkg] = map[string]bool{}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				idents[id.Name], decls[pkg][id.Name] = true, true
			}
			return true
		})
		for _, group := range file.Comments {
			comments = append(comments, comment{file: rel, dir: path.Dir(rel), line: fset.Position(group.Pos()).Line, text: group.Text()})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(comments) < 5000 {
		t.Fatalf("found only %d comments", len(comments))
	}
	return comments, idents, decls
}

var (
	// namedFile matches a file of the repository in a comment, perhaps with a section.
	namedFile = regexp.MustCompile(`(?:^|[\s("` + "`" + `])((?:[\w.-]+/)*[\w-]+\.(?:go|md|proto|slt))\b(?:#([\w-]+)|, "([^"]+)")?`)
	namedTest = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*`)
	qualified = regexp.MustCompile(`\b([a-z][a-z0-9]+)\.([A-Z]\w*)`)
	mixedCaps = regexp.MustCompile(`(?:^|[\s(\[*,:;])([a-z]+[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)\b`)
)

// otherWords are words with capitals inside that are not identifiers of the repository.
var otherWords = map[string]bool{
	"KiB": true, "MiB": true, "GiB": true,
	"PostgreSQL": true, "MariaDB": true, "TiDB": true, "TiKV": true, "OpenPGP": true, "GnuPG": true,
	"P1Y2M3DT4H5M6": true, // a duration of ISO 8601
	"gRPC":          true, "HdrHistogram": true, "uPlot": true,
	"makeObjectName": true, "FigureColname": true, // of PostgreSQL's sources
}

// TestCommentsAreTrue: files, sections, tests and identifiers that comments name exist. An identifier is recognized if
// it is qualified with a package of the repository or has a capital inside.
func TestCommentsAreTrue(t *testing.T) {
	comments, idents, decls := goComments(t)
	known := func(name string) bool { return idents[name] || otherWords[name] }
	files, tests, names := 0, 0, 0
	for _, c := range comments {
		for _, m := range namedFile.FindAllStringSubmatch(c.text, -1) {
			files++
			found, ok := findFile(c.dir, m[1])
			if !ok {
				t.Errorf("%s:%d names %s, which does not exist", c.file, c.line, m[1])
			} else if section := m[2] + m[3]; section != "" && !hasSection(t, found, section) {
				t.Errorf("%s:%d names the section %q of %s, which does not exist", c.file, c.line, section, m[1])
			}
		}
		for _, name := range namedTest.FindAllString(c.text, -1) {
			if tests++; !idents[name] && !strings.HasSuffix(name, "_") { // a prefix of names
				t.Errorf("%s:%d names %s, which does not exist", c.file, c.line, name)
			}
		}
		for _, m := range qualified.FindAllStringSubmatch(c.text, -1) {
			if pkg := decls[m[1]]; pkg != nil {
				if names++; !pkg[m[2]] && !idents[m[2]] {
					t.Errorf("%s:%d names %s, which does not exist", c.file, c.line, m[0])
				}
			}
		}
		for _, m := range mixedCaps.FindAllStringSubmatch(c.text, -1) {
			if names++; !known(m[1]) && !known(strings.TrimSuffix(m[1], "s")) && !strings.HasSuffix(m[1], "_") {
				t.Errorf("%s:%d names %s, which does not exist", c.file, c.line, m[1])
			}
		}
	}
	t.Logf("%d files, %d tests, %d identifiers in %d comments", files, tests, names, len(comments))
	if files < 50 || tests < 50 || names < 500 {
		t.Error("hardly anything was found: does the test still recognize names?")
	}
}

// findFile looks for a named file: beside the comment, from the root, or under docs.
func findFile(dir, name string) (string, bool) {
	for _, at := range []string{dir, ".", "docs"} {
		file := filepath.Join("..", "..", filepath.FromSlash(at), filepath.FromSlash(name))
		if _, err := os.Stat(file); err == nil {
			return file, true
		}
	}
	return "", false
}

// hasSection reports whether a page has a heading with the given text or anchor.
func hasSection(t *testing.T, file, section string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(strings.TrimSpace(line), "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		anchor := strings.ReplaceAll(strings.ToLower(strings.NewReplacer("`", "", ",", "", "'", "", ":", "").Replace(heading)), " ", "-")
		if heading == section || anchor == section {
			return true
		}
	}
	return false
}
