package sql

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// sameTree are the options under which a tree and what its text parses to must be equal: positions,
// slots and kept source texts differ.
var sameTree = cmp.Options{
	cmp.Comparer(func(a, b ast.Pos) bool { return true }),
	cmpopts.IgnoreFields(ast.Literal{}, "Slot"),
	cmpopts.IgnoreFields(ast.Prepare{}, "Text"),
	cmpopts.IgnoreFields(ast.Explain{}, "Text"),
	cmpopts.IgnoreFields(ast.DeclareCursor{}, "Text"),
	cmpopts.IgnoreFields(ast.CreateView{}, "Text"),
	cmpopts.IgnoreFields(ast.Unsupported{}, "Hint"),
	cmpopts.EquateEmpty(),
}

// parseAll parses every statement of a text.
func parseAll(text string) ([]ast.Statement, error) {
	lexer := NewLexer()
	lexer.Reset(text)
	var list []ast.Statement
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		node, err := Parse(st)
		if err != nil {
			return list, err
		}
		list = append(list, node)
	}
}

// checkRoundTrip fails unless a tree's text parses back to an equal tree.
func checkRoundTrip(t *testing.T, source string, node ast.Statement) {
	t.Helper()
	text := node.String()
	again, err := ParseStatement(text)
	if err != nil {
		t.Errorf("%s\nprints as\n%s\nwhich is refused: %v", source, text, err)
		return
	}
	if diff := cmp.Diff(node, again, sameTree); diff != "" {
		t.Errorf("%s\nprints as\n%s\nwhich parses to another tree (-first +again):\n%s", source, text, diff)
	}
}

// codeOf is the SQLSTATE of an error, "" for none.
func codeOf(err error) pgerror.Code {
	var e *pgerror.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
