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

// unexplainedSleeps is how many calls of time.Sleep in tests have no comment. It may only fall: a test waits for what it needs,
// by a channel, testing/synctest or a loop with a deadline.
const unexplainedSleeps = 28

// Goal: no test sleeps in the hope that something has happened meanwhile. Method: every call of time.Sleep in a test file, outside of the
// clause of a loop that waits for a condition, has a comment on its line or the one before, which says why time has to pass.
func TestSleepsAreExplained(t *testing.T) {
	root := filepath.Join("..", "..")
	var bare []string
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
					bare = append(bare, fset.Position(n.Pos()).String())
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(bare) > unexplainedSleeps {
		t.Errorf("%d calls of time.Sleep without a comment, of which there may be %d:\n%s", len(bare), unexplainedSleeps, strings.Join(bare, "\n"))
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
