package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/copyformat"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// copyIn is one COPY FROM STDIN under way.
type copyIn struct {
	*copyCommands
	node     *ast.Copy
	data     io.Reader
	sent     *recorder // what data has yielded, if the COPY may run again
	target   *catalog.TableDescriptor
	ordinals []int
	names    []string
	opts     copyformat.Options
	insert   *planner.Insert // INSERT INTO t (columns) VALUES ($1, …): what else a row gets
	levels   [][]expr.Scalar // the first over the parameters, each next over the one before
	rows     []types.Row     // what the levels yield; the last is the full row
	where    expr.Scalar     // over the full row; nil: all rows are wanted
	needs    []*planner.Need // of where
	eval     expr.Context
	place    []int // by column: its place among eval.Inputs, -1 if unused
	// reading is the column whose field is being read, -1 between fields; value is the field.
	reading int
	value   []byte
}

// recordedBytes is how much of a COPY's data is kept for another attempt.
const recordedBytes = 4 << 20

// recorder keeps what is read through it.
type recorder struct {
	from       io.Reader
	data       []byte
	memory     *memory.Account // that data draws from
	ended      bool            // everything has been read
	incomplete bool            // it was too much
}

// Read implements io.Reader.
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.ended = r.ended || err == io.EOF
	if len(r.data)+n > recordedBytes {
		r.close()
	}
	if !r.incomplete {
		r.record(p[:n])
	}
	return n, err
}

func (r *recorder) record(p []byte) {
	before := int64(cap(r.data))
	r.data = append(r.data, p...)
	if r.memory.Grow(int64(cap(r.data))-before) != nil {
		r.data = r.data[:0:before]
		r.close()
	}
}

// close lets go of the data.
func (r *recorder) close() {
	r.memory.Shrink(int64(cap(r.data)))
	r.data, r.incomplete = nil, true
}

// repeatable reports whether the whole of the data has been read and is there to be read again.
func (c *copyIn) repeatable() bool { return c.sent != nil && c.sent.ended && !c.sent.incomplete }

// plan prepares a COPY under the schema of the transaction, also for another attempt.
func (c *copyIn) plan(ctx context.Context) (err error) {
	if c.repeatable() {
		c.data = bytes.NewReader(c.sent.data)
	}
	if err := c.tx.use(ctx); err != nil {
		return err
	}
	if c.target, c.ordinals, err = c.table(ctx, c.node); err != nil {
		return err
	}
	c.names = columnNames(c.target, c.ordinals)
	if c.opts, err = copyOptions(c.node, c.names); err != nil {
		return err
	}
	if err := c.planWhere(ctx); err != nil {
		return err
	}
	if err := c.planRows(ctx, c.names); err != nil {
		return err
	}
	if err := c.portals.hold(ctx, c.tx.txn, nil); err != nil {
		return err
	}
	return nil
}

func columnNames(t *catalog.TableDescriptor, ordinals []int) []string {
	names := make([]string, len(ordinals))
	for i, o := range ordinals {
		names[i] = t.Columns[o].Name
	}
	return names
}

// planRows plans an INSERT of one row of parameters and takes from it how a full row is made of the
// columns given: defaults, serial values, constraints.
func (c *copyIn) planRows(ctx context.Context, names []string) error {
	insert := &ast.Insert{Table: ast.TableName{Schema: c.target.Schema, Name: c.target.Name}}
	values := make([]ast.Expr, len(names))
	declared := make([]types.Type, len(names))
	for i, name := range names {
		insert.Columns = append(insert.Columns, ast.InsertColumn{Name: name})
		values[i] = &ast.Param{Number: i + 1}
		declared[i] = c.target.Columns[c.ordinals[i]].Type
	}
	insert.Query = &ast.Query{Body: &ast.Values{Rows: [][]ast.Expr{values}}}
	insert.Overriding = "SYSTEM" // COPY stores what it is given in identity columns.
	plan, err := c.plans.planTree(ctx, insert, nil, declared)
	if err != nil {
		return err
	}
	plan.Needs = append(plan.Needs, c.needs...)
	if err := c.tx.authorize(ctx, plan); err != nil {
		return err
	}
	if plan.Guarded {
		return pgerror.New(pgerror.FeatureNotSupported, "COPY FROM not supported with row-level security").WithHint("Use INSERT statements instead.")
	}
	node, ok := plan.Root.(*planner.Insert)
	if !ok {
		return fmt.Errorf("plan of COPY is a %T", plan.Root)
	}
	c.insert = node
	for _, t := range plan.Writes {
		c.tx.guard.Writes(t, 0)
	}
	if c.levels, err = rowLevels(node.Input); err != nil {
		return err
	}
	c.rows = nil
	for _, level := range c.levels {
		c.rows = append(c.rows, make(types.Row, len(level)))
	}
	c.eval = expr.Context{Ctx: ctx, Env: c.env, Inputs: make(types.Row, len(plan.Inputs))}
	c.inputs(plan.Plan)
	return nil
}

// planWhere binds WHERE over the rows of the table.
func (c *copyIn) planWhere(ctx context.Context) (err error) {
	if c.node.Where == nil {
		return nil
	}
	c.where, c.needs, err = planner.BindCondition(ctx, c.node.Where, c.target, c.tx.resolver, c.env)
	return err
}

// wanted reports whether WHERE holds for the row that was made.
func (c *copyIn) wanted() (bool, error) {
	if c.where == nil {
		return true, nil
	}
	d, err := c.where.Eval(&c.eval, c.rows[len(c.rows)-1])
	return err == nil && !d.IsNull() && d.Bool(), err
}

// rowLevels takes the expressions out of the plan of a one-row VALUES with projections over it.
func rowLevels(n planner.Node) ([][]expr.Scalar, error) {
	switch n := n.(type) {
	case *planner.Values:
		if len(n.Rows) == 1 {
			return [][]expr.Scalar{n.Rows[0]}, nil
		}
	case *planner.Project:
		levels, err := rowLevels(n.Input)
		return append(levels, n.Exprs), err
	}
	return nil, fmt.Errorf("plan of COPY's rows has a %T", n)
}

// inputs maps the plan's inputs to the columns: COPY's parameters are used once each.
func (c *copyIn) inputs(plan *planner.Plan) {
	byParam := make([]int, len(c.ordinals))
	for i := range byParam {
		byParam[i] = -1
	}
	for i, in := range plan.Inputs {
		if in.Param > 0 {
			byParam[in.Param-1] = i
		}
	}
	c.place = byParam
}

// run reads rows and inserts them.
func (c *copyIn) run(ctx context.Context) (_ Tag, err error) {
	c.reading = -1
	reader := copyformat.NewReader(interruptible{ctx, c.data}, c.opts, len(c.ordinals), c.env.Memory)
	defer reader.Close()
	defer c.env.NextRow()
	if err := copyformat.ReadHeader(reader, c.opts, c.names); err != nil {
		return Tag{}, c.locate(err, reader.Line())
	}
	var rt executor.Runtime
	c.runner.fillRuntime(&rt, nil)
	inserter := executor.NewInserter(c.target, c.insert.Checks, c.insert.Observed, c.insert.Indexed, &rt)
	inserter.Enforce(c.insert.References)
	inserter.Generate(c.insert.Generated)
	inserter.Fire(c.insert.Triggers)
	inserter.Confine(c.insert.Bound)
	inserter.Divide(c.insert.Parts)
	defer func() { err = firstOf(err, inserter.Close()) }()
	if err := inserter.Begin(ctx); err != nil {
		return Tag{}, err
	}
	for {
		fields, err := reader.Next()
		if err == io.EOF {
			break
		}
		wanted := true
		if err == nil {
			err = c.makeRow(fields)
		}
		if err == nil {
			wanted, err = c.wanted()
		}
		if err == nil && wanted {
			held := c.env.PinAll() // The inserter begins a row, which gives back what the one before has reserved.
			err = inserter.Insert(ctx, c.rows[len(c.rows)-1])
			c.env.Unpin(held)
		}
		if err != nil {
			return Tag{}, c.locate(err, reader.Line())
		}
	}
	if err := c.drain(ctx); err != nil {
		return Tag{}, err
	}
	if err := inserter.Flush(ctx); err != nil {
		return Tag{}, err
	}
	if inserter.Written(func(t *catalog.TableDescriptor, rows int64) { c.tx.guard.Writes(t, rows) }); c.insert.Parts == nil {
		c.tx.guard.Writes(c.target, inserter.Rows())
	}
	return Tag{Verb: "COPY", Rows: inserter.Rows()}, nil
}

// interruptible is a reader that fails once ctx has ended. A read that waits for the client goes on until data comes, as in
// PostgreSQL.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (i interruptible) Read(p []byte) (int, error) {
	n, err := i.r.Read(p)
	if ctxErr := i.ctx.Err(); ctxErr != nil && err != io.EOF {
		return 0, errors.Join(ctxErr, err)
	}
	return n, err
}

// drain reads what the client sends behind an end marker, to the end of its data: it may still give up.
func (c *copyIn) drain(ctx context.Context) error {
	_, err := io.Copy(io.Discard, interruptible{ctx, c.data})
	return err
}

// shownBytes is how much of a field an error's context shows.
const shownBytes = 100

// locate says which row of the data, and which field, an error is about.
func (c *copyIn) locate(err error, line int) error {
	var pg *pgerror.Error
	if !errors.As(err, &pg) || pg.Where != "" {
		return err
	}
	located := *pg
	located.Where = fmt.Sprintf("COPY %s, line %d", c.target.Name, line)
	if c.reading >= 0 {
		located.Where += ", column " + c.names[c.reading]
		if c.value == nil {
			located.Where += ": null input"
		} else if c.opts.Format != copyformat.Binary && utf8.Valid(c.value) {
			shown, more := c.value, ""
			if len(shown) > shownBytes {
				shown, more = shown[:shownBytes], "..."
			}
			located.Where += ": \"" + strings.ToValidUTF8(string(shown), "") + more + "\""
		}
	}
	return &located
}

// makeRow parses the fields and computes the full row.
func (c *copyIn) makeRow(fields [][]byte) (err error) {
	c.env.NextRow()
	for i := range c.ordinals {
		if i >= len(fields) {
			return pgerror.New(pgerror.BadCopyFileFormat, "missing data for column %q", c.names[i])
		}
		value := types.Null
		c.reading, c.value = i, fields[i]
		if field := fields[i]; field != nil {
			value, err = c.parseField(i, field)
		} else {
			err = types.CheckNull(c.target.Columns[c.ordinals[i]].Type, &c.env.Format)
		}
		if err != nil {
			return err
		}
		c.reading = -1
		if at := c.place[i]; at >= 0 {
			c.eval.Inputs[at] = value
		}
	}
	var in types.Row
	for l, level := range c.levels {
		for i, e := range level {
			if c.rows[l][i], err = e.Eval(&c.eval, in); err != nil {
				return err
			}
		}
		in = c.rows[l]
	}
	return nil
}

// parseField reads one field. The inserter encodes the row at once, so values may alias the field.
func (c *copyIn) parseField(i int, field []byte) (types.Datum, error) {
	t, env := c.target.Columns[c.ordinals[i]].Type, c.env
	if err := env.Reserve(len(field)); err != nil { // Of some types the value is a copy.
		return types.Null, err
	}
	if c.opts.Format == copyformat.Binary {
		return env.ParseBinary(t, field)
	}
	text := types.Bytes(field).Text()
	if err := validText(text); err != nil {
		return types.Null, err
	}
	return env.ParseText(t, text)
}
