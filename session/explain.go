package session

import (
	"context"
	"fmt"
	"time"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/percolator"
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
	if n.Format == "xml" || n.Format == "yaml" {
		return pgerror.Unsupported("EXPLAIN (FORMAT "+n.Format+")", "Use the formats text or json.").At(n.Position())
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
	opts := planner.ExplainOptions{Literals: literals, Format: &c.settings.Format, NoCosts: n.NoCosts, NoTimes: n.NoTiming}
	var sum planner.ExplainSummary
	if n.Analyze {
		opts.Actual, err = c.analyze(ctx, n, target, &run{literals: literals, params: params}, &sum)
	} else {
		opts.Parallel, opts.Values = parallelism(c.settings), c.values(ctx, target, literals, params)
	}
	if err != nil {
		return err
	}
	if n.Summary {
		sum.Planning = planning
	}
	lines, err := explainLines(n, target.Plan, opts, &sum)
	if err != nil {
		return err
	}
	rows := make([]types.Row, len(lines))
	for i, line := range lines {
		rows[i] = types.Row{types.Text(line)}
	}
	return q.rows(explainColumns(n), rows)
}

// explainColumns describes the rows of EXPLAIN.
func explainColumns(n *ast.Explain) []Column {
	cols := textColumns("QUERY PLAN")
	if n.Format == "json" {
		cols[0].Type = types.TJSON
	}
	return cols
}

// explainLines returns the rows of EXPLAIN.
func explainLines(n *ast.Explain, p *planner.Plan, opts planner.ExplainOptions, sum *planner.ExplainSummary) ([]string, error) {
	if n.Format == "json" {
		text, err := planner.ExplainJSON(p, opts, sum)
		return []string{text}, err
	}
	return append(planner.Explain(p, opts), sum.Lines()...), nil
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

// analyze runs a plan and returns what was measured of its nodes. It adds to sum what the statement asks for.
func (c *explainCommands) analyze(
	ctx context.Context, n *ast.Explain, plan *cachedPlan, e *run, sum *planner.ExplainSummary,
) (actual func(planner.Node) (planner.Actual, bool), _ error) {
	runner, analysis, err := executor.NewAnalyzedRunner(plan.Plan)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	e.plan = &cachedPlan{Plan: plan.Plan, version: plan.version, idle: runner}
	if n.Buffers {
		e.requests = &percolator.Requests{}
	}
	_, err = c.runner.executePlan(ctx, e, &rowCollector{discard: true})
	if txn := c.plans.tx.txn; n.Buffers && txn != nil { // It goes on, also after an error.
		txn.CountRequests(nil)
	}
	if err != nil {
		return nil, err
	}
	if n.Summary {
		sum.Execution = time.Since(began)
	}
	if r := e.requests; r != nil {
		sum.Requests = &planner.ExplainRequests{
			Reads: r.Reads.Load(), ReadKeys: r.ReadKeys.Load(), Scans: r.Scans.Load(), ScanRows: r.ScanRows.Load(),
			Locks: r.Locks.Load(), LockedKeys: r.LockedKeys.Load(),
		}
	}
	return func(node planner.Node) (planner.Actual, bool) {
		stats, ok := analysis.Node(node)
		actual := planner.Actual{Rows: stats.Rows, Loops: stats.Loops, Time: stats.Time}
		if stats.TempBytes > 0 {
			actual.Note = fmt.Sprintf("(spilled %d kB)", stats.TempBytes>>10)
		}
		return actual, ok
	}, nil
}
