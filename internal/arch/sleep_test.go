package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// Goal: tests wait for conditions (by a channel, testing/synctest or a loop with a deadline), not for durations that are
// probably long enough. Method: every call of time.Sleep in a test file, except in a loop that waits for a condition, has
// a comment on its line or the line before it, which states why time must pass.
func TestSleepsAreExplained(t *testing.T) {
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		commented := map[int]bool{}
		for _, group := range file.Comments {
			for line := fset.Position(group.Pos()).Line; line <= fset.Position(group.End()).Line+1; line++ {
				commented[line] = true
			}
		}
		polls := map[ast.Node]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt:
				if post, ok := n.Post.(*ast.ExprStmt); ok {
					polls[post.X] = true
				}
				if len(n.Body.List) == 1 && n.Cond != nil {
					if body, ok := n.Body.List[0].(*ast.ExprStmt); ok {
						polls[body.X] = true
					}
				}
			case *ast.CallExpr:
				if !polls[n] && isSleep(n) && !commented[fset.Position(n.Pos()).Line] {
					t.Errorf("%s: a call of time.Sleep without a comment", fset.Position(n.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isSleep(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "Sleep" {
		return false
	}
	pkg, ok := s.X.(*ast.Ident)
	return ok && pkg.Name == "time"
}
