package sql

import (
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// sameTree reports whether two trees are equal but for positions, slots and kept source texts.
func sameTree(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Interface, reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return sameTree(a.Elem(), b.Elem())
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameTree(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		for i := range a.NumField() {
			if !fromText(a.Type().Field(i)) && !sameTree(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	}
	return !a.IsValid() || a.Equal(b)
}

// fromText reports whether a field says only how the source was written.
func fromText(f reflect.StructField) bool {
	switch f.Name {
	case "Pos", "At", "ValueAt", "CollateAt", "Slot", "Hint":
		return true
	case "Written", "Text", "Heading":
		return f.Type.Kind() == reflect.String
	}
	return false
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
		node, err := Parse(st, nil)
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
	again, err := ParseTree(text)
	if err != nil {
		t.Errorf("%s\nprints as\n%s\nwhich is refused: %v", source, text, err)
		return
	}
	if !sameTree(reflect.ValueOf(node), reflect.ValueOf(again)) {
		t.Errorf("%s\nprints as\n%s\nwhich parses to another tree (-first +again):\n%s", source, text,
			cmp.Diff(node, again, cmpopts.EquateEmpty()))
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
