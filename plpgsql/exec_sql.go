package plpgsql

import (
	"fmt"
	"io"
	"strings"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// planned reports whether a statement has a plan.
func planned(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Query, *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge:
		return true
	}
	return false
}

// commandName names a statement by the words that it begins with.
func commandName(tree ast.Statement) string {
	words := strings.Fields(fmt.Sprint(tree))
	n := 0
	for n < len(words) && n < 3 && words[n] == strings.ToUpper(words[n]) && strings.Trim(words[n], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
		n++
	}
	return strings.Join(words[:n], " ")
}

// discard takes rows that nobody reads.
type discard struct{}

func (discard) Row(types.Row) error { return nil }
func (discard) Reset()              {}

func (a *activation) setFound(found bool) { a.values[a.found] = types.Bool(found) }

func (a *activation) perform(s *performStmt) error {
	b, err := a.bound(s.query)
	if err != nil {
		return err
	}
	res, err := a.runPlan(sqlFrame{s.query.kind, s.query.text}, s.query.shift, b, 0, discard{})
	if err != nil {
		return err
	}
	a.rows = res.Rows
	a.setFound(res.Rows > 0)
	return nil
}

// columnShape is the shape of the rows of a statement.
func columnShape(columns []planner.Column) *shape {
	s := &shape{}
	for i := range columns {
		s.names, s.types = append(s.names, columns[i].Name), append(s.types, columns[i].Type)
	}
	return s
}

// changes reports whether a statement counts the rows that it changes.
func changes(verb string) bool {
	return verb == "INSERT" || verb == "UPDATE" || verb == "DELETE" || verb == "MERGE"
}

// sqlStmt executes a statement of SQL.
func (a *activation) sqlStmt(s *sqlStmt) error {
	e := s.query
	f := sqlFrame{e.kind, e.text}
	if e.refused != nil {
		return f.within(e.refused, 0)
	}
	if !planned(e.query) {
		if err := a.refuse(e.query); err != nil {
			return err
		}
		res, err := a.command(f, e.query, discard{})
		if err != nil {
			return err
		}
		if s.into != nil {
			return pgerror.New(pgerror.SyntaxError, "INTO used with a command that cannot return data")
		}
		a.rows = res.Rows
		return nil
	}
	b, err := a.bound(e)
	if err != nil {
		return err
	}
	p := b.plan.Planned()
	switch {
	case s.into == nil && p.Returns:
		err := pgerror.New(pgerror.SyntaxError, "query has no destination for result data")
		if p.Tag == "SELECT" {
			err.WithHint("If you want to discard the results of a SELECT, use PERFORM instead.")
		}
		_, failed := a.runPlan(f, e.shift, b, 1, discard{})
		if failed != nil {
			return failed
		}
		return err
	case s.into != nil && !p.Returns:
		return pgerror.New(pgerror.SyntaxError, "INTO used with a command that cannot return data")
	}
	return a.intoTargets(f, e.shift, b, s.into, s.strict)
}

// intoTargets executes a bound statement, and stores its row.
func (a *activation) intoTargets(f sqlFrame, shift int, b *binding, into *target, strict bool) error {
	p := b.plan.Planned()
	limit, keep := 0, 0
	if into != nil {
		keep = 1
		if limit = 1; strict || changes(p.Tag) || a.host.Options().checks(TooManyRows) {
			limit = 2
		}
		if changes(p.Tag) {
			limit = 0
		}
	}
	one := &oneRow{keep: keep}
	res, err := a.runPlan(f, shift, b, limit, one)
	if err != nil {
		return err
	}
	if !changes(p.Tag) {
		a.rows = min(res.Rows, 1)
		if into == nil {
			a.rows = res.Rows
		}
	} else {
		a.rows = res.Rows
	}
	if into == nil {
		a.setFound(res.Rows > 0)
		return nil
	}
	switch {
	case one.n == 0 && strict:
		return a.strictError(noDataFound, "query returned no rows", b)
	case one.n > 1 && (strict || changes(p.Tag)):
		return a.severalRows(b)
	case one.n > 1:
		if err := a.host.Options().extra(TooManyRows, a.severalRows(b), a.warn); err != nil {
			return err
		}
	}
	a.setFound(one.n > 0)
	var row types.Row
	if one.n > 0 {
		row = one.rows[0]
	}
	return a.assignTargets(into, row, columnShape(p.Root.Columns()))
}

// severalRows is the error of INTO with more than one row.
func (a *activation) severalRows(b *binding) *pgerror.Error {
	e := a.strictError(tooManyRows, "query returned more than one row", b)
	return e.WithHint("Make sure the query returns a single row, or use LIMIT 1.")
}

// warn shows a warning, with where it arose.
func (a *activation) warn(e *pgerror.Error) {
	e.Where = a.host.Stack().Context()
	a.host.Notice(e)
}

// strictError is the error of INTO STRICT, with the parameters if the function wants them.
func (a *activation) strictError(code pgerror.Code, message string, b *binding) *pgerror.Error {
	e := pgerror.New(code, "%s", message)
	if !a.strictParams || len(b.sources) == 0 {
		return e
	}
	list := ""
	for _, s := range b.sources {
		name, t := a.vars[s.variable].name, a.vars[s.variable].typ
		if s.field >= 0 {
			name += "." + a.shapes[s.variable].names[s.field]
			t = a.shapes[s.variable].types[s.field]
		}
		if list != "" {
			list += ", "
		}
		list += name + " = " + a.quoted(a.load(s), t)
	}
	return e.WithDetail("parameters: %s", list)
}

func (a *activation) quoted(d types.Datum, t types.Type) string {
	if d.IsNull() {
		return "NULL"
	}
	s, _ := a.text(d, t)
	out := "'"
	for _, r := range s {
		if r == '\'' {
			out += "'"
		}
		out += string(r)
	}
	return out + "'"
}

// refuse refuses statements that functions must not contain.
func (a *activation) refuse(tree ast.Statement) error {
	switch n := tree.(type) {
	case *ast.Begin, *ast.Commit, *ast.Rollback, *ast.Savepoint, *ast.ReleaseSavepoint, *ast.RollbackTo:
		return pgerror.New(pgerror.FeatureNotSupported, "unsupported transaction command in PL/pgSQL")
	case *ast.Copy:
		if n.Source == "STDIN" || n.Source == "STDOUT" {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot COPY to/from client in PL/pgSQL")
		}
	}
	return nil
}

// command executes a statement that has no plan.
func (a *activation) command(f sqlFrame, tree ast.Statement, to Sink) (Result, error) {
	stack := a.host.Stack()
	if err := stack.push(f); err != nil {
		return Result{}, err
	}
	defer stack.pop()
	if a.Signature.ReadOnly && !readsOnly(tree) {
		return Result{}, a.inStatement(f, nonVolatile(tree), 0)
	}
	res, err := a.host.Command(a.ctx, tree, to)
	if err != nil {
		return res, a.inStatement(f, err, 0)
	}
	return res, nil
}

// readsOnly reports whether a command may run in a function that is not volatile.
func readsOnly(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Show, *ast.Explain, *ast.Fetch, *ast.CloseCursor:
		return true
	}
	return false
}

func nonVolatile(tree ast.Statement) error {
	return pgerror.New(pgerror.FeatureNotSupported, "%s is not allowed in a non-volatile function", commandName(tree))
}

// callStmt executes CALL and DO.
func (a *activation) callStmt(s *callStmt) error {
	e := s.query
	f := sqlFrame{e.kind, e.text}
	if e.refused != nil {
		return f.within(e.refused, 0)
	}
	call, ok := e.query.(*ast.CallProcedure)
	if !ok {
		_, err := a.command(f, e.query, discard{})
		return err
	}
	b, err := a.bound(e)
	if err != nil {
		return err
	}
	p := b.plan.Planned()
	into, err := a.outputTargets(e, call, p)
	if err != nil {
		return err
	}
	one := &oneRow{keep: 1}
	if err := a.runCall(f, e.shift, b, one); err != nil || one.n == 0 {
		return err
	}
	for i, t := range into {
		if err := a.assign(t, one.rows[0][i], p.Root.Columns()[i].Type); err != nil {
			return err
		}
	}
	return nil
}

// runCall executes a bound CALL. The procedure may end the transaction where this one may.
func (a *activation) runCall(f sqlFrame, shift int, b *binding, to Sink) error {
	stack := a.host.Stack()
	if err := stack.push(f); err != nil {
		return err
	}
	defer stack.pop()
	if err := a.host.Begin(a.ctx, a.Signature.ReadOnly); err != nil {
		return err
	}
	err := a.host.CallProcedure(a.ctx, b.plan, a.inputsOf(b), a.call.Atomic || a.subs > 0, to)
	if err != nil {
		return a.inStatement(f, err, shift)
	}
	return nil
}

// outputTargets are the variables that take the output parameters of a CALL: its arguments for them.
func (a *activation) outputTargets(e *expression, call *ast.CallProcedure, p *planner.Plan) ([]*target, error) {
	var list []*target
	for i, arg := range p.Procedure.Outputs {
		t := (*target)(nil)
		if arg >= 0 {
			if ref, ok := call.Call.Args[arg].(*ast.ColumnRef); ok {
				t = a.variableNamed(e, ref.Parts)
			}
		}
		switch name := p.Root.Columns()[i].Name; {
		case t == nil && name != "":
			return nil, pgerror.New(pgerror.SyntaxError, "procedure parameter \"%s\" is an output parameter but corresponding argument is not writable", name)
		case t == nil:
			return nil, pgerror.New(pgerror.SyntaxError, "procedure parameter %d is an output parameter but corresponding argument is not writable", arg+1)
		}
		list = append(list, t)
	}
	return list, nil
}

// variableNamed returns the variable, or the field of one, that a name means; nil: none, or one that cannot be assigned.
func (a *activation) variableNamed(e *expression, parts []string) *target {
	v, used := e.names.lookup(parts, func(v int) bool { return a.vars[v].record })
	switch {
	case used == 0 || a.vars[v].constant:
		return nil
	case used == len(parts):
		return &target{variable: v}
	case used == len(parts)-1 && a.vars[v].record:
		return &target{variable: v, field: parts[used]}
	}
	return nil
}

// queryText computes the text of EXECUTE.
func (a *activation) queryText(e *expression) (string, error) {
	d, t, err := a.eval(e)
	if err != nil {
		return "", err
	}
	if d.IsNull() {
		return "", pgerror.New(pgerror.NullValueNotAllowed, "query string argument of EXECUTE is null")
	}
	return a.text(d, t)
}

// arguments computes the parameters of USING.
func (a *activation) arguments(list []*expression) (types.Row, []types.Type, error) {
	var row types.Row
	var ts []types.Type
	for _, e := range list {
		d, t, err := a.eval(e)
		if err != nil {
			return nil, nil, err
		}
		row, ts = append(row, d), append(ts, t)
	}
	return row, ts, nil
}

// parseDynamic parses the text of EXECUTE.
func (a *activation) parseDynamic(text string) ([]ast.Statement, error) {
	lexer := sql.NewLexer()
	lexer.UseMeter(a.host.Meter())
	lexer.Reset(text)
	var list []ast.Statement
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		tree, err := sql.Parse(st, a.host.Meter())
		if err != nil {
			return nil, err
		}
		list = append(list, tree)
	}
}

// planDynamic plans a statement of EXECUTE with the parameters of USING; cursor: for a cursor that WHERE CURRENT OF may name.
func (a *activation) planDynamic(tree ast.Statement, row types.Row, ts []types.Type, cursor bool) (*binding, error) {
	plan, err := a.host.Plan(a.ctx, tree, planner.Options{NoSlots: true, ParamTypes: append([]types.Type{}, ts...), Cursor: cursor})
	if err != nil {
		return nil, err
	}
	b := &binding{plan: plan}
	if ok, err := a.host.Holds(a.ctx, plan); err != nil || !ok {
		return nil, err
	}
	if n := len(plan.Planned().ParamTypes); n > len(row) {
		return nil, pgerror.New(pgerror.UndefinedParameter, "there is no parameter $%d", n)
	}
	return b, nil
}

// dynamic executes EXECUTE.
func (a *activation) dynamic(s *executeStmt) error {
	text, err := a.queryText(s.query)
	if err != nil {
		return err
	}
	row, ts, err := a.arguments(s.using)
	if err != nil {
		return err
	}
	f := sqlFrame{statementExpr, text}
	trees, err := a.parseDynamic(text)
	if err != nil {
		return a.inStatement(f, err, 0)
	}
	for i, tree := range trees {
		if err := a.dynamicStatement(f, s, tree, row, ts, i == len(trees)-1); err != nil {
			return err
		}
	}
	return nil
}

func (a *activation) dynamicStatement(f sqlFrame, s *executeStmt, tree ast.Statement, row types.Row, ts []types.Type, last bool) error {
	if q, ok := tree.(*ast.Query); ok {
		if into := q.TakeInto(); into != nil {
			return pgerror.New(pgerror.FeatureNotSupported, "EXECUTE of SELECT ... INTO is not implemented").
				WithHint("You might want to use EXECUTE ... INTO or EXECUTE CREATE TABLE ... AS instead.")
		}
	}
	if !planned(tree) {
		return a.dynamicCommand(f, s, tree)
	}
	b, err := a.planDynamic(tree, row, ts, false)
	if err != nil {
		return a.inStatement(f, err, 0)
	}
	p := b.plan.Planned()
	if s.into != nil && last && !p.Returns {
		return pgerror.New(pgerror.SyntaxError, "INTO used with a command that cannot return data")
	}
	limit, keep := 0, 0
	if s.into != nil && last {
		keep = 1
		if limit = 1; s.strict {
			limit = 2
		}
		if changes(p.Tag) {
			limit = 0
		}
	}
	one := &oneRow{keep: keep}
	res, err := a.runBound(f, 0, b, row, limit, one)
	if err != nil {
		return err
	}
	if a.rows = res.Rows; s.into == nil || !last {
		return nil
	}
	switch {
	case one.n == 0 && s.strict:
		return pgerror.New(noDataFound, "query returned no rows")
	case one.n > 1 && s.strict:
		return pgerror.New(tooManyRows, "query returned more than one row")
	}
	var first types.Row
	if one.n > 0 {
		first = one.rows[0]
	}
	if !changes(p.Tag) {
		a.rows = min(a.rows, 1)
	}
	return a.assignTargets(s.into, first, columnShape(p.Root.Columns()))
}

// runBound executes a bound statement with the values of its parameters.
func (a *activation) runBound(f sqlFrame, shift int, b *binding, row types.Row, limit int, to Sink) (Result, error) {
	stack := a.host.Stack()
	if err := stack.push(f); err != nil {
		return Result{}, err
	}
	defer stack.pop()
	if err := a.host.Begin(a.ctx, a.Signature.ReadOnly); err != nil {
		return Result{}, err
	}
	res, err := a.host.Run(a.ctx, b.plan, row, limit, to)
	if err != nil {
		return res, a.inStatement(f, err, shift)
	}
	return res, nil
}

// dynamicCommand executes a statement of EXECUTE that has no plan.
func (a *activation) dynamicCommand(f sqlFrame, s *executeStmt, tree ast.Statement) error {
	switch n := tree.(type) {
	case *ast.Begin, *ast.Commit, *ast.Rollback, *ast.Savepoint, *ast.ReleaseSavepoint, *ast.RollbackTo:
		return pgerror.New(pgerror.FeatureNotSupported, "EXECUTE of transaction commands is not implemented")
	case *ast.Copy:
		if n.Source == "STDIN" || n.Source == "STDOUT" {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot COPY to/from client in PL/pgSQL")
		}
	}
	keep := 0
	if s.into != nil {
		keep = 1
	}
	one := &oneRow{keep: keep}
	res, err := a.command(f, tree, one)
	if err != nil {
		return err
	}
	if a.rows = res.Rows; a.rows < 0 {
		a.rows = 0
	}
	if s.into == nil {
		return nil
	}
	if res.Columns == nil {
		return pgerror.New(pgerror.SyntaxError, "INTO used with a command that cannot return data")
	}
	var first types.Row
	if one.n > 0 {
		first = one.rows[0]
	}
	return a.assignTargets(s.into, first, columnShape(res.Columns))
}
