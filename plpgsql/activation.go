package plpgsql

import (
	"context"
	"fmt"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Code is a function as one session executes it: what its expressions are bound to. One goroutine's.
type Code struct {
	*Function
	exprs []*binding // by id; nil: not bound yet
	casts map[castKey]expr.Scalar
	// caseTypes are the types of the operands of CASE statements, by variable, when they were last executed.
	caseTypes map[int]types.Type
}

// NewCode makes the code of a function.
func NewCode(f *Function) *Code { return &Code{Function: f, exprs: make([]*binding, f.exprs)} }

// castKey names a conversion.
type castKey struct{ from, to types.Type }

// shape is the columns of a row.
type shape struct {
	names []string
	types []types.Type
}

func (s *shape) same(o *shape) bool {
	if s == o {
		return true
	}
	if s == nil || o == nil || len(s.types) != len(o.types) {
		return false
	}
	for i := range s.types {
		if s.names[i] != o.names[i] || !s.types[i].Same(o.types[i]) {
			return false
		}
	}
	return true
}

// find returns the place of a column, -1 without one.
func (s *shape) find(name string) int {
	for i := range s.names {
		if s.names[i] == name {
			return i
		}
	}
	return -1
}

// shapeOf returns the shape of a composite type.
func shapeOf(t types.Type) *shape {
	d := t.Underlying().Def
	s := &shape{}
	for i := range d.Fields {
		s.names, s.types = append(s.names, d.Fields[i].Name), append(s.types, d.Fields[i].Type)
	}
	return s
}

// Call is how a function is called.
type Call struct {
	Args types.Row // of its input parameters
	// Yield takes the rows of a function that returns a set.
	Yield func(types.Row) error
	// Columns are those that a set has to have: of its row type, or of the call; nil: the function's one value.
	Columns []types.Type
	Names   []string
	// Atomic: the function must not end the transaction.
	Atomic bool
	// Trigger are the values of the variables of a trigger function; nil: it is none.
	Trigger *Trigger
}

// Trigger is the event for which a trigger function is called.
type Trigger struct {
	Row                   types.Type // of the table
	New, Old              types.Datum
	Name, When, Level, Op string
	Table                 *catalog.TableDescriptor
	Args                  []string
}

// activation is one execution of a function.
type activation struct {
	*Code
	ctx    context.Context
	host   Host
	call   *Call
	values types.Row
	shapes []*shape // of the rows among the variables; nil: it has none yet
	ev     expr.Context
	inputs types.Row

	stmt     stmt   // that is executed
	doing    string // what is done beside statements; "": nothing
	doingAt  int    // its line; 0: none
	handled  *pgerror.Error
	rows     int64 // ROW_COUNT
	subs     int   // subtransactions that are open
	result   types.Datum
	returned bool
	resultOf types.Type
	large    int64 // bytes of large values in variables
}

// contextLine is the line of context of what is being executed.
func (a *activation) contextLine() string {
	name := a.Signature.Context
	switch {
	case a.doing != "" && a.doingAt > 0:
		return fmt.Sprintf("PL/pgSQL function %s line %d %s", name, a.doingAt, a.doing)
	case a.doing != "":
		return fmt.Sprintf("PL/pgSQL function %s %s", name, a.doing)
	case a.stmt != nil:
		return fmt.Sprintf("PL/pgSQL function %s line %d at %s", name, a.stmt.at().line, kindOf(a.stmt))
	}
	return "PL/pgSQL function " + name
}

// Execute executes a function. The value is that of a function that returns one; of a procedure, or of a function with several output
// parameters, a row of them.
func (c *Code) Execute(ctx context.Context, host Host, call *Call) (types.Datum, error) {
	a := &activation{Code: c, ctx: ctx, host: host, call: call}
	a.ev = expr.Context{Ctx: ctx, Env: host.Env()}
	stack := host.Stack()
	if err := stack.push(a); err != nil {
		return types.Null, err
	}
	d, err := a.execute()
	if err != nil {
		err = a.located(err)
	}
	stack.pop()
	a.release()
	return d, err
}

// located adds the line of context to an error.
func (a *activation) located(err error) error {
	e, catchable := a.host.Explain(err)
	if !catchable {
		return err
	}
	c := *e
	return c.InContext("%s", a.contextLine())
}

func (a *activation) execute() (types.Datum, error) {
	a.values, a.shapes = make(types.Row, len(a.vars)), make([]*shape, len(a.vars))
	for i, v := range a.vars {
		if v.record && !v.any() {
			a.shapes[i] = shapeOf(v.typ)
		}
	}
	a.values[a.found] = types.Bool(false)
	a.doing = "while storing call arguments into local variables"
	if err := a.takeArguments(); err != nil {
		return types.Null, err
	}
	a.doing = ""
	f, err := a.block(a.body)
	if err != nil {
		return types.Null, err
	}
	a.stmt, a.doing = nil, ""
	switch {
	case f.kind == exitFlow, f.kind == continueFlow:
		return types.Null, pgerror.New(pgerror.SyntaxError, "%s cannot be used outside a loop", map[bool]string{true: "EXIT", false: "CONTINUE"}[f.kind == exitFlow])
	case f.kind != returnFlow && a.needsReturn():
		return types.Null, pgerror.New(noResultReturned, "control reached end of function without RETURN")
	}
	return a.finish()
}

// needsReturn reports whether a function must not end without RETURN.
func (a *activation) needsReturn() bool {
	sig := a.Signature
	return !sig.Set && !sig.Proc && sig.Returns.OID != types.OIDVoid && len(a.outs) == 0
}

// takeArguments gives the parameters their values.
func (a *activation) takeArguments() error {
	n := 0
	for i := range a.Signature.Params {
		if !a.Signature.Params[i].Mode.reads() {
			continue
		}
		if n < len(a.call.Args) {
			a.keep(a.params[i], a.call.Args[n])
			if a.vars[a.params[i]].any() {
				a.adopt(a.params[i], a.call.Args[n])
			}
		}
		n++
	}
	if t := a.call.Trigger; t != nil {
		return a.takeTrigger(t)
	}
	return nil
}

// takeTrigger gives the variables of a trigger function their values.
func (a *activation) takeTrigger(t *Trigger) error {
	row := shapeOf(t.Row)
	if t.Level == "ROW" { // Both may be named, also where one is NULL.
		a.shapes[a.new], a.shapes[a.old] = row, row
		a.values[a.new], a.values[a.old] = t.New, t.Old
	}
	args := types.NewArray(&types.Array{Elem: types.TText, Elems: []types.Datum{}})
	if len(t.Args) > 0 {
		elems := make([]types.Datum, len(t.Args))
		for i, s := range t.Args {
			elems[i] = types.Text(s)
		}
		args = types.NewDimArray(types.TText, elems, []types.Dim{{Low: 0, Len: int32(len(elems))}})
	}
	for i, d := range []types.Datum{
		types.Text(t.Name), types.Text(t.When), types.Text(t.Level), types.Text(t.Op), types.Int(int64(t.Table.OID())),
		types.Text(t.Table.Name), types.Text(t.Table.Name), types.Text(t.Table.Schema), types.Int(int64(len(t.Args))),
		args,
	} {
		a.values[a.old+1+i] = d
	}
	return nil
}

// keep stores a value in a variable. Large values draw memory for as long as the activation lasts.
func (a *activation) keep(v int, d types.Datum) {
	a.values[v] = d
}

// adopt gives a variable of type record the shape of a row.
func (a *activation) adopt(v int, d types.Datum) {
	if d.IsNull() {
		return
	}
	a.shapes[v] = recordShape(d.Record())
}

// recordShape returns the shape of a record.
func recordShape(r *types.Record) *shape {
	s := &shape{types: r.Types, names: r.Names}
	if s.names == nil {
		for i := range r.Types {
			s.names = append(s.names, fmt.Sprintf("f%d", i+1))
		}
	}
	return s
}

// release gives back the memory of the variables.
func (a *activation) release() {
	if a.large > 0 && a.host.Env().Memory != nil {
		a.host.Env().Memory.Shrink(a.large)
		a.large = 0
	}
}

// poll returns an error, from time to time, if the statement has been cancelled.
func (a *activation) poll() error { return a.ev.Env.Step(loopSteps) }

// loopSteps is what an iteration of a loop counts as.
const loopSteps = 100
