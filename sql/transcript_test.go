package sql

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// TestTranscripts: texts and what they become. The commands:
//
//	parse  the statements' trees, printed back, or the error with its position and hint
//	split  each statement's offset and text, as Lexer.Next gives them
//	key    each statement's plan cache key, slotted literals and number of parameters
//	names  the output columns' names
//	expr   an expression of the catalog
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "expr" {
				x, err := ParseExpr(d.Input)
				if err != nil {
					return describeError(err)
				}
				return x.String()
			}
			return eachStatement(d.Input, d.Cmd)
		})
	})
}

func eachStatement(text, cmd string) string {
	var b strings.Builder
	lexer := NewLexer()
	lexer.Reset(text)
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			return b.String() + describeError(err)
		}
		switch cmd {
		case "split":
			fmt.Fprintf(&b, "%d: %s\n", st.Offset, st.Text)
			continue
		case "key":
			fmt.Fprintf(&b, "%s\n", st.Key)
			for i, lit := range st.Literals {
				fmt.Fprintf(&b, "  %d: %c %q at %d\n", i, literalKindMark(lit.Kind), lit.Value, lit.Pos)
			}
			if st.Params > 0 {
				fmt.Fprintf(&b, "  %d parameters\n", st.Params)
			}
			continue
		}
		node, err := Parse(st, nil)
		switch {
		case err != nil:
			b.WriteString(describeError(err) + "\n")
		case cmd == "names":
			b.WriteString(strings.Join(outputNames(node), " | ") + "\n")
		default:
			b.WriteString(node.String() + "\n")
		}
	}
}

func outputNames(node ast.Statement) []string {
	q, ok := node.(*ast.Query)
	if !ok {
		return nil
	}
	var names []string
	for _, col := range q.Body.(*ast.Select).Columns {
		names = append(names, col.Name)
	}
	return names
}

func describeError(err error) string {
	var e *pgerror.Error
	if !errors.As(err, &e) {
		return "no SQLSTATE: " + err.Error()
	}
	s := fmt.Sprintf("%s at %d: %s", e.Code, e.Position, e.Message)
	if e.Hint != "" {
		s += "\nhint: " + e.Hint
	}
	return s
}
