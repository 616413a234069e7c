package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// casesOf lists the types *ast.X of the switches in a function of a file.
func casesOf(t *testing.T, file, function string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("../..", file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != function {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			clause, ok := n.(*ast.CaseClause)
			if !ok {
				return true
			}
			for _, e := range clause.List {
				if star, ok := e.(*ast.StarExpr); ok {
					if sel, ok := star.X.(*ast.SelectorExpr); ok {
						names = append(names, sel.Sel.Name)
					}
				}
			}
			return true
		})
	}
	if len(names) == 0 {
		t.Fatalf("%s: no statements in %s", file, function)
	}
	return names
}

// Goal: for every statement that runs, something decides who may run it. Method: the statements that the dispatchers name must be named
// where privileges are checked; those with a plan are checked by the planner's needs (TestNodesAreAuthorized in package planner).
func TestStatementsAreAuthorized(t *testing.T) {
	schema := casesOf(t, "ddl/authorize.go", "authorize")
	for _, name := range casesOf(t, "ddl/ddl.go", "dispatch") {
		if !slices.Contains(schema, name) {
			t.Errorf("ddl runs *ast.%s, and (*run).authorize does not name it", name)
		}
	}
	for _, name := range casesOf(t, "ddl/ddl.go", "Handles") {
		if !slices.Contains(schema, name) {
			t.Errorf("ddl handles *ast.%s, and (*run).authorize does not name it", name)
		}
	}
	commands := casesOf(t, "session/privileges.go", "authorize")
	for _, name := range casesOf(t, "session/commands.go", "run") {
		if !slices.Contains(commands, name) {
			t.Errorf("session runs *ast.%s, and (*commands).authorize does not name it", name)
		}
	}
	for _, name := range casesOf(t, "planner/build.go", "Build") {
		if !slices.Contains(casesOf(t, "session/plans.go", "hasPlan"), name) {
			t.Errorf("*ast.%s is planned, and session does not run it as a plan, which is authorized as it is opened", name)
		}
	}
}
