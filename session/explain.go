package session

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// explainCommands runs EXPLAIN.
type explainCommands struct {
	plans    *plans
	prepared *preparedCommands
	runner   *statementRunner
	settings *settings.Settings
}

// run is EXPLAIN [ANALYZE]: the plan as a tree of text lines.
func (c *explainCommands) run(ctx context.Context, n *ast.Explain, q request) error {
	if n.Format != "" && n.Format != "text" {
		return pgerror.Unsupported("EXPLAIN (FORMAT "+n.Format+")", "Use EXPLAIN's text format.").At(n.Position())
	}
	began := time.Now()
	target, literals, params, err := c.target(ctx, n)
	if err != nil {
		return err
	}
	if target == nil {
		return pgerror.Unsupported("EXPLAIN of this statement", "EXPLAIN takes SELECT, VALUES, INSERT, UPDATE, DELETE and EXECUTE.")
	}
	if err := c.plans.tx.authorize(ctx, target); err != nil {
		return err
	}
	planning := time.Since(began)
	var lines []string
	if n.Analyze {
		lines, err = c.analyze(ctx, target, literals, params, planning)
	} else {
		lines = planner.Explain(target.Plan, planner.ExplainOptions{
			Literals: literals, Format: &c.settings.Format, Parallel: parallelism(c.settings), Values: c.values(ctx, target, literals, params),
		})
	}
	if err != nil {
		return err
	}
	rows := make([]types.Row, len(lines))
	for i, line := range lines {
		rows[i] = types.Row{types.Text(line)}
	}
	return q.rows(textColumns("QUERY PLAN"), rows)
}

// values has the values of the literals and parameters of a statement; nil if some cannot be computed.
func (c *explainCommands) values(ctx context.Context, target *cachedPlan, literals []sql.Literal, params types.Row) *expr.Context {
	inputs, err := planner.Inputs(target.Plan, literals, params, c.runner.env, nil)
	if err != nil {
		return nil
	}
	return &expr.Context{Ctx: ctx, Env: c.runner.env, Inputs: inputs}
}

// target returns the plan to be shown, and what running it takes.
func (c *explainCommands) target(ctx context.Context, n *ast.Explain) (*cachedPlan, []sql.Literal, types.Row, error) {
	if e, ok := n.Statement.(*ast.Execute); ok {
		p, err := c.prepared.statements.find(e.Name)
		if err != nil || p.plan == nil {
			return nil, nil, nil, err
		}
		if err := c.plans.validate(ctx, p, false); err != nil {
			return nil, nil, nil, err
		}
		params, err := c.prepared.evalArguments(ctx, e.Args, p.params)
		if err != nil {
			return nil, nil, nil, err
		}
		plan, err := c.plans.valuesPlan(ctx, p.plan, execution{p.statement, p.params, params})
		return plan, p.statement.Literals, params, err
	}
	st, err := c.plans.lexOne(n.Text)
	if err != nil {
		return nil, nil, nil, err
	}
	plan, _, err := c.plans.planText(ctx, st, nil)
	return plan, st.Literals, nil, err
}

// analyze runs a plan and returns its lines with what was measured.
func (c *explainCommands) analyze(ctx context.Context, plan *cachedPlan, literals []sql.Literal, params types.Row, planning time.Duration) ([]string, error) {
	runner, analysis, err := executor.NewAnalyzedRunner(plan.Plan)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	e := &run{plan: &cachedPlan{Plan: plan.Plan, version: plan.version, idle: runner}, literals: literals, params: params}
	if _, err := c.runner.executePlan(ctx, e, &rowCollector{discard: true}); err != nil {
		return nil, err
	}
	took := time.Since(began)
	lines := planner.Explain(plan.Plan, planner.ExplainOptions{
		Literals: literals, Format: &c.settings.Format,
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
