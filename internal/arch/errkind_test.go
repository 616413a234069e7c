package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// TestErrorsAreClassifiedByKind: an error that states its kind is found by errkind.Of and errkind.As, which respect what
// wraps it, and never by errors.As, whose result depends on the order in which a caller tries the types. Method: all
// types with a method Kind that returns an errkind.Kind are collected by name; no call of errors.As or errors.AsType is
// for one of them.
func TestErrorsAreClassifiedByKind(t *testing.T) {
	files := map[string]*ast.File{}
	stated := map[string]bool{}
	for _, s := range sources(t) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", s.path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[s.path] = file
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == "Kind" && f.Recv != nil && returnsErrKind(f) {
				stated[typeName(file, f.Recv.List[0].Type)] = true
			}
		}
	}
	if len(stated) < 20 {
		t.Fatalf("only %d errors state a kind: is the test looking in the right place?", len(stated))
	}
	for path, file := range files {
		for _, decl := range file.Decls {
			for _, name := range soughtTypes(file, decl) {
				if stated[name] {
					t.Errorf("%s looks for %s with package errors: it states its kind, use errkind.Of or errkind.As", path, name)
				}
			}
		}
	}
}

func returnsErrKind(f *ast.FuncDecl) bool {
	if f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	sel, ok := f.Type.Results.List[0].Type.(*ast.SelectorExpr)
	return ok && sel.X.(*ast.Ident).Name == "errkind"
}

// typeName is the name of T, *T or *pkg.T with its package.
func typeName(file *ast.File, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(file, e.X)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	case *ast.Ident:
		return file.Name.Name + "." + e.Name
	}
	return ""
}

// soughtTypes returns the types of the errors that a declaration looks for by type.
func soughtTypes(file *ast.File, decl ast.Decl) (names []string) {
	types := map[string]string{} // of variables
	ast.Inspect(decl, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && spec.Type != nil {
			for _, name := range spec.Names {
				types[name.Name] = typeName(file, spec.Type)
			}
		}
		return true
	})
	ast.Inspect(decl, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if index, ok := call.Fun.(*ast.IndexExpr); ok && isSelector(index.X, "errors", "AsType") {
			names = append(names, typeName(file, index.Index))
		}
		if isSelector(call.Fun, "errors", "As") && len(call.Args) == 2 {
			if ref, ok := call.Args[1].(*ast.UnaryExpr); ok {
				if v, ok := ref.X.(*ast.Ident); ok {
					names = append(names, types[v.Name])
				}
			}
		}
		return true
	})
	return names
}

func isSelector(e ast.Expr, pkg, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg
}
