package session

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/copyformat"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// copyCommands runs COPY.
type copyCommands struct {
	tx      *transaction
	plans   *plans
	portals *portals
	runner  *statementRunner
	env     *builtin.Env
}

// run is COPY … FROM STDIN and COPY … TO STDOUT.
func (c *copyCommands) run(ctx context.Context, n *ast.Copy, q request) (Tag, error) {
	if n.Source != "STDIN" && n.Source != "STDOUT" {
		e := pgerror.Unsupported("COPY with a file of the server", `Use COPY … FROM STDIN or TO STDOUT: psql's \copy reads and writes files of the client.`)
		return Tag{}, e.At(n.Position())
	}
	if n.From {
		return c.from(ctx, n, q)
	}
	if err := c.tx.use(ctx); err != nil {
		return Tag{}, err
	}
	return c.to(ctx, n, q.w)
}

// table finds the table of a COPY and the ordinals of the columns named, all visible ones if none
// is.
func (c *copyCommands) table(ctx context.Context, n *ast.Copy) (*catalog.TableDescriptor, []int, error) {
	t, err := c.tx.resolver.Relation(ctx, n.Table.Schema, n.Table.Name)
	if err != nil {
		return nil, nil, err
	}
	if t == nil {
		return nil, nil, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", n.Table.Name).At(n.Table.Position())
	}
	if t.Kind != catalog.KindTable {
		return nil, nil, notCopied(t, n.From)
	}
	if t.Materialized {
		if n.From {
			return nil, nil, pgerror.New(pgerror.WrongObjectType, "cannot copy to materialized view %q", t.Name)
		}
		return nil, nil, pgerror.New(pgerror.WrongObjectType, "cannot copy from materialized view %q", t.Name).WithHint("Try the COPY (SELECT ...) TO variant.")
	}
	if t.IsPartitioned() && !n.From {
		return nil, nil, pgerror.New(pgerror.WrongObjectType, "cannot copy from partitioned table %q", t.Name).WithHint("Try the COPY (SELECT ...) TO variant.")
	}
	var ordinals []int
	if len(n.Columns) == 0 {
		for i := range t.Columns {
			if !t.Columns[i].Hidden && t.Columns[i].Generated == "" {
				ordinals = append(ordinals, i)
			}
		}
		return t, ordinals, nil
	}
	seen := map[int]bool{}
	for _, name := range n.Columns {
		i := t.ColumnNamed(name)
		if i < 0 {
			return nil, nil, pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", name, t.Name)
		}
		if t.Columns[i].Generated != "" {
			return nil, nil, pgerror.New(pgerror.InvalidColumnReference, "column %q is a generated column", name).
				WithDetail("Generated columns cannot be used in COPY.")
		}
		if seen[i] {
			return nil, nil, pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", name)
		}
		seen[i] = true
		ordinals = append(ordinals, i)
	}
	return t, ordinals, nil
}

// notCopied is the error of COPY with a relation that is no table.
func notCopied(t *catalog.TableDescriptor, from bool) error {
	kind := "non-table relation"
	switch t.Kind {
	case catalog.KindView:
		kind = "view"
	case catalog.KindSequence:
		kind = "sequence"
	}
	switch {
	case !from && t.Kind == catalog.KindSequence:
		return pgerror.New(pgerror.WrongObjectType, "cannot copy from sequence %q", t.Name)
	case !from:
		return pgerror.New(pgerror.WrongObjectType, "cannot copy from %s %q", kind, t.Name).WithHint("Try the COPY (SELECT ...) TO variant.")
	case t.Kind == catalog.KindView:
		return pgerror.New(pgerror.WrongObjectType, "cannot copy to view %q", t.Name).
			WithHint("To enable copying to a view, provide an INSTEAD OF INSERT trigger.")
	}
	return pgerror.New(pgerror.WrongObjectType, "cannot copy to %s %q", kind, t.Name)
}

// from is COPY FROM STDIN.
func (c *copyCommands) from(ctx context.Context, n *ast.Copy, q request) (Tag, error) {
	if c.tx.activeModes().ReadOnly {
		return Tag{}, readOnlyError("COPY FROM")
	}
	own := q.simple && !c.tx.phase.shared() // transaction
	if !own && !c.tx.queried {
		c.tx.forgetUnused()
		c.tx.pessimistic = true
	}
	in := &copyIn{copyCommands: c, node: n}
	err := in.plan(ctx)
	if err != nil {
		return Tag{}, err
	}
	if in.data, err = q.w.CopyIn(len(in.ordinals), in.opts.Format == copyformat.Binary); err != nil {
		return Tag{}, err
	}
	r := &run{planned: true, copy: in}
	if own {
		r.policy = alone
		in.sent = &recorder{from: in.data, memory: c.env.Memory}
		defer in.sent.close()
		in.data = in.sent
	}
	err = c.runner.execute(ctx, r, q.w)
	return r.tag, err
}

// to is COPY TO STDOUT.
func (c *copyCommands) to(ctx context.Context, n *ast.Copy, w ResultWriter) (Tag, error) {
	query := n.Query
	if query == nil {
		table, ordinals, err := c.table(ctx, n)
		if err != nil {
			return Tag{}, err
		}
		query = selectColumns(table, columnNames(table, ordinals))
	}
	plan, err := c.plans.planTree(ctx, query, nil, nil)
	if err != nil {
		return Tag{}, err
	}
	if err := c.tx.authorize(ctx, plan); err != nil {
		return Tag{}, err
	}
	cols := plan.Root.Columns()
	names := make([]string, len(cols))
	for i := range cols {
		names[i] = cols[i].Name
	}
	opts, err := copyOptions(n, names)
	if err != nil {
		return Tag{}, err
	}
	for i := range cols {
		if opts.Format == copyformat.Binary {
			if err := types.RequireBinary(cols[i].Type); err != nil {
				return Tag{}, err
			}
		}
	}
	data, err := w.CopyOut(len(cols), opts.Format == copyformat.Binary)
	if err != nil {
		return Tag{}, err
	}
	out := &copyOut{ResultWriter: w, w: data, opts: opts, cols: cols, format: &c.env.Format, env: c.env}
	if err := out.header(names); err != nil {
		return Tag{}, err
	}
	tag, err := c.runner.executePlan(ctx, &run{plan: plan}, out)
	if err != nil {
		return Tag{}, err
	}
	if opts.Format == copyformat.Binary {
		if _, err := data.Write(copyformat.AppendBinaryTrailer(nil)); err != nil {
			return Tag{}, err
		}
	}
	return Tag{Verb: "COPY", Rows: tag.Rows}, w.CopyDone()
}

func selectColumns(t *catalog.TableDescriptor, names []string) *ast.Query {
	sel := &ast.Select{From: []ast.TableExpr{&ast.TableRef{Name: ast.TableName{Schema: t.Schema, Name: t.Name}}}}
	for _, name := range names {
		sel.Columns = append(sel.Columns, ast.SelectItem{Expr: &ast.ColumnRef{Parts: []string{name}}, Name: name})
	}
	return &ast.Query{Body: sel}
}
