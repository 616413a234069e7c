package session

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// runExplain is EXPLAIN [ANALYZE]: the plan as a tree of text lines.
func (s *Session) runExplain(ctx context.Context, n *ast.Explain, w ResultWriter) error {
	if n.Format != "" && n.Format != "text" {
		return pgerror.Unsupported("EXPLAIN (FORMAT "+n.Format+")", "Use EXPLAIN's text format.").At(n.Position())
	}
	began := time.Now()
	target, literals, params, err := s.explained(ctx, n)
	if err != nil {
		return err
	}
	if target == nil {
		return pgerror.Unsupported("EXPLAIN of this statement", "EXPLAIN takes SELECT, VALUES, INSERT, UPDATE, DELETE and EXECUTE.")
	}
	planning := time.Since(began)
	var lines []string
	if n.Analyze {
		lines, err = s.explainAnalyze(ctx, target, literals, params, planning)
	} else {
		lines = planner.Explain(target.Plan, planner.ExplainOptions{Literals: literals, Format: &s.settings.format})
	}
	if err != nil {
		return err
	}
	rows := make([]types.Row, len(lines))
	for i, line := range lines {
		rows[i] = types.Row{types.Text(line)}
	}
	return s.sendRows(s.utilityColumns(n), rows, w)
}

// explained returns the plan to be shown, and what running it takes.
func (s *Session) explained(ctx context.Context, n *ast.Explain) (*cachedPlan, []sql.Literal, types.Row, error) {
	if e, ok := n.Statement.(*ast.Execute); ok {
		p, err := s.statements.find(e.Name)
		if err != nil || p.plan == nil {
			return nil, nil, nil, err
		}
		if err := s.current(ctx, p, false); err != nil {
			return nil, nil, nil, err
		}
		params, err := s.evalArguments(ctx, e.Args, p.params)
		return p.plan, p.statement.Literals, params, err
	}
	s.lexer.Reset(n.Text)
	st, err := s.lexer.Next()
	if err != nil {
		return nil, nil, nil, err
	}
	st = st.Clone()
	plan, _, err := s.planText(ctx, st, nil)
	return plan, st.Literals, nil, err
}

func (s *Session) explainAnalyze(ctx context.Context, c *cachedPlan, literals []sql.Literal, params types.Row, planning time.Duration) ([]string, error) {
	runner, analysis, err := executor.NewAnalyzedRunner(c.Plan)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	e := &run{plan: &cachedPlan{Plan: c.Plan, version: c.version, idle: runner}, literals: literals, params: params}
	if _, err := s.executePlan(ctx, e, &rowCollector{discard: true}); err != nil {
		return nil, err
	}
	took := time.Since(began)
	lines := planner.Explain(c.Plan, planner.ExplainOptions{
		Literals: literals, Format: &s.settings.format,
		Actual: func(node planner.Node) (planner.Actual, bool) {
			stats, ok := analysis.Node(node)
			actual := planner.Actual{Rows: stats.Rows, Loops: stats.Loops, Time: stats.Time}
			if stats.TempBytes > 0 {
				actual.Note = fmt.Sprintf("(spilled %d kB)", stats.TempBytes>>10)
			}
			return actual, ok
		},
	})
	return append(lines,
		fmt.Sprintf("Planning Time: %.3f ms", planning.Seconds()*1e3),
		fmt.Sprintf("Execution Time: %.3f ms", took.Seconds()*1e3)), nil
}

// evalArguments computes EXECUTE's arguments as values of the parameters' types: the plan of
// SELECT CAST(arg AS type), … yields them.
func (s *Session) evalArguments(ctx context.Context, args []ast.Expr, want []types.Type) (types.Row, error) {
	if len(args) != len(want) {
		return nil, pgerror.New(pgerror.SyntaxError, "wrong number of parameters: expected %d, got %d", len(want), len(args))
	}
	if len(args) == 0 {
		return nil, nil
	}
	sel := &ast.Select{}
	for i, arg := range args {
		// The type's printed name is SQL, so that the parser gives its tree.
		cast, err := sql.ParseExpr("NULL::" + want[i].String())
		if err != nil {
			return nil, err
		}
		sel.Columns = append(sel.Columns, ast.SelectItem{Name: "arg", Expr: &ast.Cast{X: arg, Type: cast.(*ast.Cast).Type}})
	}
	plan, err := s.planTree(ctx, &ast.Query{Body: sel}, nil, nil)
	if err != nil {
		return nil, err
	}
	collected := &rowCollector{}
	if _, err := s.executePlan(ctx, &run{plan: plan, keeps: true}, collected); err != nil {
		return nil, err
	}
	if len(collected.rows) != 1 {
		return nil, pgerror.New(pgerror.FeatureNotSupported, "set-returning functions are not allowed in EXECUTE parameters")
	}
	return collected.rows[0], nil
}
