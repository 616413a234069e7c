package session

import (
	"context"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// cursors runs DECLARE, FETCH, MOVE and CLOSE.
type cursors struct {
	tx         *transaction
	portals    *portals
	plans      *plans
	statements *statements
	runner     *statementRunner
	describer  *describer
	env        *builtin.Env
}

// declare makes a portal of a query. A cursor WITH HOLD takes all its rows at once, so that it
// can outlive the transaction; any other reads as it is fetched from. What it has read is kept, unless it goes forward only.
func (c *cursors) declare(ctx context.Context, n *ast.DeclareCursor, source *sql.Statement) error {
	mark := c.plans.meter.Drawn()
	st, err := c.plans.lexOne(n.Text)
	if err != nil {
		return err
	}
	p := &prepared{statement: st}
	if err := c.plans.prepareCursor(ctx, p); err != nil {
		return movedError(err, n.At)
	}
	locks := p.plan != nil && p.plan.Locks != ""
	if locks && n.Scroll {
		return pgerror.New(pgerror.FeatureNotSupported, "DECLARE SCROLL CURSOR ... FOR %s is not supported", p.plan.Locks).WithDetail("Scrollable cursors must be READ ONLY.")
	}
	if p.plan != nil && len(p.plan.Modifying) > 0 {
		return pgerror.New(pgerror.FeatureNotSupported, "DECLARE CURSOR must not contain data-modifying statements in WITH")
	}
	if !c.tx.phase.shared() && !n.Hold {
		return pgerror.New(pgerror.NoActiveSQLTransaction, "DECLARE CURSOR can only be used in transaction blocks")
	}
	if c.portals.byName[n.Name] != nil {
		return pgerror.New(pgerror.DuplicateCursor, "cursor %q already exists", n.Name)
	}
	po := &portal{name: n.Name, prepared: p, cursor: true, binary: n.Binary, at: c.env.StmtTime, memory: c.statements.memory}
	if source != nil {
		po.text = source.Text
	}
	po.counted = c.plans.meter.Take(mark)
	po.depth, po.fresh = len(c.tx.savepoints), true
	po.run = run{planned: true, plan: p.plan, literals: p.statement.Literals, keeps: true}
	if !n.NoScroll && !locks && p.plan != nil {
		po.scroll = scroll{rows: executor.NewRowList(p.plan.Root.Columns(), &executor.Runtime{Env: c.env}), bounded: !n.Scroll}
	}
	po.scroll.width = len(c.describer.columns(p))
	if err := c.open(ctx, po, n.Hold); err != nil {
		po.close()
		return err
	}
	c.portals.add(po)
	return nil
}

// cursorBytes is the memory of an open cursor beside its rows and its text: the portal and the operators of its plan.
const cursorBytes = 16 << 10

// open starts a cursor's query: from here on it shows what there is now. One that locks rows takes
// its locks now, and keeps its rows: when it must run again because a row has changed, none has been shown.
func (c *cursors) open(ctx context.Context, po *portal, outlives bool) error {
	if err := po.memory.Grow(cursorBytes); err != nil {
		return err
	}
	po.counted += cursorBytes
	if !outlives && po.prepared.plan.Locks == "" {
		return c.runner.open(ctx, &po.run)
	}
	po.run.maxRows = keepRows
	if _, err := c.runner.executePlan(ctx, &po.run, &rowCollector{discard: true}); err != nil || !outlives {
		return err
	}
	po.outlives = true
	return po.run.runner.Detach(ctx)
}

// fetch moves a cursor and, unless it is MOVE, sends the rows.
func (c *cursors) fetch(ctx context.Context, n *ast.Fetch, q request) (Tag, error) {
	po := c.portals.cursor(n.Name)
	if po == nil {
		return Tag{}, pgerror.New(pgerror.InvalidCursorName, "cursor %q does not exist", n.Name)
	}
	m := &movement{c: c, ctx: ctx, po: po, w: q.w}
	if n.Move {
		m.w = discarded
	} else if err := q.w.Columns(c.describer.columns(po.prepared), po.fetchFormats(q), q.simple); err != nil {
		return Tag{}, err
	}
	rows, err := m.run(n)
	if err != nil {
		return Tag{}, err
	}
	if n.Move {
		return Tag{Verb: "MOVE", Rows: rows}, nil
	}
	return Tag{Verb: "FETCH", Rows: rows}, nil
}

// fetchFormats are the formats of the values that FETCH sends: a simple query gets those of a BINARY cursor in binary.
func (po *portal) fetchFormats(q request) []int16 {
	if po.binary && q.simple {
		return []int16{1}
	}
	return q.formats
}

// CurrentKey implements builtin.Cursors.
func (m *portals) CurrentKey(name string, table uint64, tableName string) (types.Row, error) {
	po := m.byName[name]
	switch {
	case po == nil:
		return nil, pgerror.New(pgerror.InvalidCursorName, "cursor \"%s\" does not exist", name)
	case !po.cursor:
		return nil, pgerror.Unsupported("WHERE CURRENT OF a portal of the extended protocol", "DECLARE a cursor.")
	case po.outlives && !po.fresh:
		return nil, pgerror.New(pgerror.InvalidCursorState, "cursor \"%s\" is held from a previous transaction", name)
	}
	plan := po.prepared.plan
	var at *planner.Position
	for i := range plan.Positions {
		if p := &plan.Positions[i]; p.Table == table {
			if at != nil {
				return nil, pgerror.New(pgerror.InvalidCursorState, "cursor \"%s\" has multiple FOR UPDATE/SHARE references to table \"%s\"", name, tableName)
			}
			at = p
		}
	}
	switch {
	case at == nil && plan.Locks != "":
		return nil, pgerror.New(pgerror.InvalidCursorState, "cursor \"%s\" does not have a FOR UPDATE/SHARE reference to table \"%s\"", name, tableName)
	case at == nil:
		return nil, pgerror.New(pgerror.InvalidCursorState, "cursor \"%s\" is not a simply updatable scan of table \"%s\"", name, tableName)
	case po.scroll.pos < 1 || po.scroll.pos > po.scroll.read:
		return nil, pgerror.New(pgerror.InvalidCursorState, "cursor \"%s\" is not positioned on a row", name)
	}
	return po.scroll.keys[at.At : at.At+at.Width], nil
}

// pull runs a cursor for count rows, 0 for all that remain.
func (c *cursors) pull(ctx context.Context, po *portal, count int, w ResultWriter) (int64, error) {
	if po.done {
		return 0, nil
	}
	po.run.maxRows, po.run.quiet = count, true
	tag, err := c.runner.executePlan(ctx, &po.run, w)
	if err != nil {
		return 0, err
	}
	po.done = !po.run.suspended
	return tag.Rows, nil
}

// close is CLOSE.
func (c *cursors) close(n *ast.CloseCursor) (Tag, error) {
	if n.Name == "" {
		c.portals.removeCursors()
		return verb("CLOSE CURSOR ALL"), nil
	}
	po := c.portals.byName[n.Name]
	if po == nil {
		return Tag{}, pgerror.New(pgerror.InvalidCursorName, "cursor %q does not exist", n.Name)
	}
	c.portals.remove(n.Name)
	return verb("CLOSE CURSOR"), nil
}
