package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/copyformat"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// runCopy is COPY … FROM STDIN and COPY … TO STDOUT.
func (s *Session) runCopy(ctx context.Context, n *ast.Copy, w ResultWriter) (Tag, error) {
	if n.Source != "STDIN" && n.Source != "STDOUT" {
		e := pgerror.Unsupported("COPY with a file of the server", `Use COPY … FROM STDIN or TO STDOUT: psql's \copy reads and writes files of the client.`)
		return Tag{}, e.At(n.Position())
	}
	if n.From {
		return s.copyFrom(ctx, n, w)
	}
	if err := s.use(ctx); err != nil {
		return Tag{}, err
	}
	return s.copyTo(ctx, n, w)
}

// copyTable finds the table of a COPY and the ordinals of the columns named, all visible ones if none
// is.
func (s *Session) copyTable(ctx context.Context, n *ast.Copy) (*catalog.TableDescriptor, []int, error) {
	t, err := s.tx.resolver.Relation(ctx, n.Table.Schema, n.Table.Name)
	if err != nil {
		return nil, nil, err
	}
	if t == nil {
		return nil, nil, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", n.Table.Name).At(n.Table.Position())
	}
	if t.Kind != catalog.KindTable {
		e := pgerror.New(pgerror.WrongObjectType, "cannot copy from or to %q: it is not a table", t.Name)
		return nil, nil, e.WithHint("Try the COPY (SELECT ...) TO variant.")
	}
	var ordinals []int
	if len(n.Columns) == 0 {
		for i := range t.Columns {
			if !t.Columns[i].Hidden {
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
		if seen[i] {
			return nil, nil, pgerror.New(pgerror.DuplicateColumn, "column %q specified more than once", name)
		}
		seen[i] = true
		ordinals = append(ordinals, i)
	}
	return t, ordinals, nil
}

// copyIn is one COPY FROM STDIN under way.
type copyIn struct {
	s        *Session
	node     *ast.Copy
	data     io.Reader
	sent     *recorder // what data has yielded, if the COPY may run again
	table    *catalog.TableDescriptor
	ordinals []int
	names    []string
	opts     copyformat.Options
	insert   *planner.Insert // INSERT INTO t (columns) VALUES ($1, …): what else a row gets
	levels   [][]expr.Scalar // the first over the parameters, each next over the one before
	rows     []types.Row     // what the levels yield; the last is the full row
	eval     expr.Context
	place    []int // by column: its place among eval.Inputs, -1 if unused
}

func (s *Session) copyFrom(ctx context.Context, n *ast.Copy, w ResultWriter) (Tag, error) {
	if s.modes().readOnly {
		return Tag{}, readOnlyError("COPY FROM")
	}
	if n.Where != nil {
		return Tag{}, pgerror.Unsupported("COPY FROM with WHERE", "Copy into a table of its own and INSERT … SELECT from it.")
	}
	own := s.simple && !s.inBlock() // transaction
	if !own && !s.tx.queried {
		s.forgetUnused()
		s.tx.pessimistic = true
	}
	c := &copyIn{s: s, node: n}
	err := c.plan(ctx)
	if err != nil {
		return Tag{}, err
	}
	if c.data, err = w.CopyIn(len(c.ordinals), c.opts.Format == copyformat.Binary); err != nil {
		return Tag{}, err
	}
	r := &run{planned: true, copy: c}
	if own {
		r.policy = alone
		c.sent = &recorder{from: c.data}
		c.data = c.sent
	}
	err = s.execute(ctx, r, w)
	return r.tag, err
}

// recordedBytes is how much of a COPY's data is kept for another attempt.
const recordedBytes = 4 << 20

// recorder keeps what is read through it.
type recorder struct {
	from       io.Reader
	data       []byte
	ended      bool // everything has been read
	incomplete bool // it was too much
}

// Read implements io.Reader.
func (r *recorder) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.ended = r.ended || err == io.EOF
	if len(r.data)+n > recordedBytes {
		r.data, r.incomplete = nil, true
	}
	if !r.incomplete {
		r.data = append(r.data, p[:n]...)
	}
	return n, err
}

// repeatable reports whether the whole of the data has been read and is there to be read again.
func (c *copyIn) repeatable() bool { return c.sent != nil && c.sent.ended && !c.sent.incomplete }

// plan prepares a COPY under the schema of the transaction, also for another attempt.
func (c *copyIn) plan(ctx context.Context) (err error) {
	s := c.s
	if c.repeatable() {
		c.data = bytes.NewReader(c.sent.data)
	}
	if err := s.use(ctx); err != nil {
		return err
	}
	if c.table, c.ordinals, err = s.copyTable(ctx, c.node); err != nil {
		return err
	}
	c.names = columnNames(c.table, c.ordinals)
	if c.opts, err = copyOptions(c.node, c.names); err != nil {
		return err
	}
	if err := c.planRows(ctx, c.names); err != nil {
		return err
	}
	if err := s.holdPortals(ctx, nil); err != nil {
		return err
	}
	s.guard.Writes(c.table, 0)
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
	insert := &ast.Insert{Table: ast.TableName{Schema: c.table.Schema, Name: c.table.Name}}
	values := make([]ast.Expr, len(names))
	declared := make([]types.Type, len(names))
	for i, name := range names {
		insert.Columns = append(insert.Columns, ast.InsertColumn{Name: name})
		values[i] = &ast.Param{Number: i + 1}
		declared[i] = c.table.Columns[c.ordinals[i]].Type
	}
	insert.Query = &ast.Query{Body: &ast.Values{Rows: [][]ast.Expr{values}}}
	insert.Overriding = "SYSTEM" // COPY stores what it is given in identity columns.
	plan, err := c.s.planTree(ctx, insert, nil, declared)
	if err != nil {
		return err
	}
	node, ok := plan.Root.(*planner.Insert)
	if !ok {
		return fmt.Errorf("plan of COPY is a %T", plan.Root)
	}
	c.insert = node
	if c.levels, err = rowLevels(node.Input); err != nil {
		return err
	}
	c.rows = nil
	for _, level := range c.levels {
		c.rows = append(c.rows, make(types.Row, len(level)))
	}
	c.eval = expr.Context{Ctx: ctx, Env: &c.s.env, Inputs: make(types.Row, len(plan.Inputs))}
	c.inputs(plan.Plan)
	return nil
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
func (c *copyIn) run(ctx context.Context) (Tag, error) {
	reader := copyformat.NewReader(c.data, c.opts, len(c.ordinals))
	if err := copyformat.ReadHeader(reader, c.opts, c.names); err != nil {
		return Tag{}, err
	}
	var rt executor.Runtime
	c.s.fillRuntime(&rt, nil)
	inserter := executor.NewInserter(c.table, c.insert.Checks, &rt)
	for {
		fields, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = c.makeRow(fields)
		}
		if err == nil {
			err = inserter.Insert(ctx, c.rows[len(c.rows)-1])
		}
		if err != nil {
			return Tag{}, c.locate(err, reader.Line())
		}
	}
	if err := inserter.Flush(ctx); err != nil {
		return Tag{}, err
	}
	c.s.guard.Writes(c.table, inserter.Rows())
	return Tag{Verb: "COPY", Rows: inserter.Rows()}, nil
}

// locate says which row of the data an error is about.
func (c *copyIn) locate(err error, line int) error {
	var pg *pgerror.Error
	if !errors.As(err, &pg) || pg.Where != "" {
		return err
	}
	located := *pg
	located.Where = fmt.Sprintf("COPY %s, line %d", c.table.Name, line)
	return &located
}

// makeRow parses the fields and computes the full row.
func (c *copyIn) makeRow(fields [][]byte) (err error) {
	for i, field := range fields {
		value := types.Null
		if field != nil {
			if value, err = c.parseField(i, field); err != nil {
				return err
			}
		}
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
	t := c.table.Columns[c.ordinals[i]].Type
	if c.opts.Format == copyformat.Binary {
		return types.ParseBinary(t, field, &c.s.env.Format)
	}
	text := types.Bytes(field).Text()
	if err := validText(text); err != nil {
		return types.Null, err
	}
	return types.ParseText(t, text, &c.s.env.Format)
}

// copyOut is the ResultWriter that prints a query's rows as COPY data.
type copyOut struct {
	ResultWriter // holds back and rewinds
	w            io.Writer
	opts         copyformat.Options
	cols         []Column
	format       *types.Format
	line         []byte
	field        []byte
}

func (s *Session) copyTo(ctx context.Context, n *ast.Copy, w ResultWriter) (Tag, error) {
	query := n.Query
	if query == nil {
		table, ordinals, err := s.copyTable(ctx, n)
		if err != nil {
			return Tag{}, err
		}
		query = selectColumns(table, columnNames(table, ordinals))
	}
	plan, err := s.planTree(ctx, query, nil, nil)
	if err != nil {
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
	data, err := w.CopyOut(len(cols), opts.Format == copyformat.Binary)
	if err != nil {
		return Tag{}, err
	}
	out := &copyOut{ResultWriter: w, w: data, opts: opts, cols: cols, format: &s.env.Format}
	if err := out.header(names); err != nil {
		return Tag{}, err
	}
	tag, err := s.executePlan(ctx, &run{plan: plan}, out)
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

// Columns implements ResultWriter: COPY has announced itself.
func (c *copyOut) Columns([]Column, []int16, bool) error { return nil }

// header writes what precedes the rows.
func (c *copyOut) header(names []string) error {
	switch {
	case c.opts.Format == copyformat.Binary:
		_, err := c.w.Write(copyformat.AppendBinaryHeader(nil))
		return err
	case !c.opts.Header:
		return nil
	}
	c.line = c.line[:0]
	for i, name := range names {
		if i > 0 {
			c.line = append(c.line, c.opts.Delimiter)
		}
		if c.opts.Format == copyformat.CSV {
			c.line = copyformat.AppendCSVField(c.line, []byte(name), &c.opts, false, len(names) == 1)
		} else {
			c.line = copyformat.AppendTextField(c.line, []byte(name), c.opts.Delimiter)
		}
	}
	_, err := c.w.Write(append(c.line, '\n'))
	return err
}

// Row implements ResultWriter.
func (c *copyOut) Row(row types.Row) error {
	if c.opts.Format == copyformat.Binary {
		return c.binaryRow(row)
	}
	c.line = c.line[:0]
	for i, value := range row {
		if i > 0 {
			c.line = append(c.line, c.opts.Delimiter)
		}
		if value.IsNull() {
			c.line = append(c.line, c.opts.Null...)
			continue
		}
		c.field = types.AppendText(c.field[:0], value, c.cols[i].Type, c.format)
		if c.opts.Format == copyformat.CSV {
			force := i < len(c.opts.ForceQuote) && c.opts.ForceQuote[i]
			c.line = copyformat.AppendCSVField(c.line, c.field, &c.opts, force, len(row) == 1)
		} else {
			c.line = copyformat.AppendTextField(c.line, c.field, c.opts.Delimiter)
		}
	}
	c.line = append(c.line, '\n')
	_, err := c.w.Write(c.line)
	return err
}

func (c *copyOut) binaryRow(row types.Row) error {
	c.line = append(c.line[:0], byte(len(row)>>8), byte(len(row)))
	for i, value := range row {
		if value.IsNull() {
			c.line = append(c.line, 0xff, 0xff, 0xff, 0xff)
			continue
		}
		c.field = types.AppendBinary(c.field[:0], value, c.cols[i].Type)
		n := len(c.field)
		c.line = append(c.line, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		c.line = append(c.line, c.field...)
	}
	_, err := c.w.Write(c.line)
	return err
}
