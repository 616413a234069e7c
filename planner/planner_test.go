package planner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// planText parses and plans the first statement of a text as the session would: by its lexer, with
// slotted literals.
func planText(m *memCatalog, text string, opts Options) (*Plan, []sql.Literal, error) {
	lexer := sql.NewLexer()
	lexer.Reset(text)
	st, err := lexer.Next()
	if err != nil {
		return nil, nil, err
	}
	if st == nil {
		return nil, nil, errors.New("no statement")
	}
	tree, err := sql.Parse(st, nil)
	if err != nil {
		return nil, nil, err
	}
	opts.Literals = append([]sql.Literal(nil), st.Literals...)
	p, err := Build(context.Background(), tree, m, &builtin.Env{}, opts)
	return p, opts.Literals, err
}

func errorText(err error) string {
	var e *pgerror.Error
	if !errors.As(err, &e) {
		return "not a pgerror: " + err.Error()
	}
	s := fmt.Sprintf("%s at %d: %s", e.Code, e.Position, e.Message)
	if e.Detail != "" {
		s += "\ndetail: " + e.Detail
	}
	return s
}

// TestPlans shows, for statements over a small schema, the plan chosen (plan), the plan with its
// estimates (costs), the trees after each rewriting rule (trace), the types of parameters, inputs
// and results (types), or the error with its position. Every plan is checked for consistency.
func TestPlans(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		m := newMemCatalog()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "define" {
				if err := m.define(d.Input); err != nil {
					return err.Error()
				}
				return "ok"
			}
			var out strings.Builder
			opts := Options{}
			if d.Cmd == "trace" {
				opts.Trace = func(rule, tree string) { fmt.Fprintf(&out, "-- %s\n%s\n", rule, tree) }
			}
			p, literals, err := planText(m, d.Input, opts)
			if err != nil {
				return errorText(err)
			}
			if err := checkPlan(p); err != nil {
				t.Errorf("%s: %s: %v", d.Pos, d.Input, err)
			}
			switch d.Cmd {
			case "types":
				return planTypes(p)
			case "trace":
				return out.String()
			}
			lines := Explain(p, ExplainOptions{Literals: literals, NoCosts: d.Cmd != "costs"})
			return strings.Join(lines, "\n")
		})
	})
}

// planTypes lists what a client and the session learn of a plan.
func planTypes(p *Plan) string {
	var s strings.Builder
	for i, t := range p.ParamTypes {
		fmt.Fprintf(&s, "$%d %s\n", i+1, t)
	}
	for _, in := range p.Inputs {
		if in.Param == 0 {
			fmt.Fprintf(&s, "literal %d %s\n", in.Slot, in.Type)
		}
	}
	for _, c := range p.Root.Columns() {
		fmt.Fprintf(&s, "%s %s\n", c.Name, c.Type)
	}
	return s.String()
}
