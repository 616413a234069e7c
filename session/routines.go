package session

import (
	"cmp"
	"context"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var _ builtin.Routines = (*routines)(nil)

// routines executes the routines that users have defined, whatever their language. It implements builtin.Routines.
type routines struct {
	h        *procedural
	settings *settings.Settings
	acting   *principal
	depth    int
	bodies   map[bodyKey]*sqlBody // of functions in SQL
	allowed  allowed
}

// allowed are the routines that a role may execute, by what was found in a statement.
type allowed struct {
	role  uint32
	at    int64  // the time of the client's statement
	epoch uint64 // procedural.Epoch
	oids  map[types.OID]struct{}
}

// maxRoutineDepth bounds the calls within each other: each has the state of a statement that is being executed.
const maxRoutineDepth = 1000

// CallRoutine implements builtin.Routines.
func (x *routines) CallRoutine(env *builtin.Env, call *builtin.RoutineCall, args []types.Datum) (types.Datum, error) {
	return x.within(env.Context(), call, args, nil)
}

// OpenRoutine implements builtin.Routines. All values are computed before the first is returned.
func (x *routines) OpenRoutine(env *builtin.Env, call *builtin.RoutineCall, args []types.Datum) (builtin.SetRows, error) {
	out := &routineRows{env: env, make: valueMaker(call)}
	if _, err := x.within(env.Context(), call, args, out); err != nil {
		out.Reset()
		return nil, err
	}
	env.Pin(-out.counted) // What the values take belongs to whoever opened them now.
	out.counted = 0
	return out, nil
}

// within calls a routine from a plan that is being executed.
func (x *routines) within(ctx context.Context, call *builtin.RoutineCall, args []types.Datum, out *routineRows) (types.Datum, error) {
	if err := x.mayExecute(ctx, call.Routine.OID); err != nil {
		return types.Null, err
	}
	x.h.calls++
	defer func() { x.h.calls-- }()
	return x.execute(ctx, call, args, true, out)
}

// mayExecute returns 42501 unless the current role may execute a routine. A plan lists what it calls, and is authorized before; constraints of domains,
// and what package ddl evaluates, have no plan.
func (x *routines) mayExecute(ctx context.Context, oid types.OID) error {
	r, err := x.h.Schema(ctx)
	if err != nil {
		return err
	}
	a := &x.allowed
	if role, at, epoch := x.acting.current, x.h.env.StmtTime, x.h.Epoch(); a.role != role || a.at != at || a.epoch != epoch {
		*a = allowed{role, at, epoch, map[types.OID]struct{}{}}
	}
	if _, found := a.oids[oid]; found {
		return nil
	}
	now, err := x.h.tx.inForce(ctx)
	if err != nil {
		return err
	}
	if d := cmp.Or(now.Routines().ByOID(oid), r.Routines().ByOID(oid)); d != nil { // execute reports the other case.
		if err := planner.RoutineDenied(catalog.NewAccess(now, a.role), d); err != nil {
			return err
		}
	}
	a.oids[oid] = struct{}{}
	return nil
}

// execute calls a routine with the role and the settings that it has. atomic: it must not end the transaction. out takes the values of a set.
func (x *routines) execute(ctx context.Context, call *builtin.RoutineCall, args types.Row, atomic bool, out *routineRows) (d types.Datum, err error) {
	r, err := x.h.Schema(ctx)
	if err != nil {
		return types.Null, err
	}
	f := r.Routines().ByOID(call.Routine.OID)
	if f == nil {
		return types.Null, pgerror.New(pgerror.UndefinedFunction, "function with OID %d does not exist", call.Routine.OID)
	}
	if f.Ret.OID == types.OIDTrigger {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "trigger functions can only be called as triggers")
	}
	leave, err := x.enterCall(ctx, f)
	if err != nil {
		return types.Null, err
	}
	defer func() { err = firstOf(err, leave()) }()
	atomic = atomic || f.SecurityDefiner || len(f.Config) > 0
	defer x.h.readTransitions(nil)()
	switch f.Language {
	case "plpgsql":
		return x.h.function(ctx, f, call, args, atomic, out.yield())
	case "sql", "internal":
		return x.sql(ctx, f, call, args, out)
	}
	return types.Null, pgerror.New(pgerror.InternalError, "language %s of function %s", f.Language, f.Name)
}

// enterCall begins a call of a routine, one deeper than its caller's, and returns what ends it.
func (x *routines) enterCall(ctx context.Context, f *catalog.RoutineDescriptor) (leave func() error, err error) {
	if x.depth++; x.depth > maxRoutineDepth {
		x.depth--
		return nil, pgerror.New(pgerror.StatementTooComplex, "stack depth limit exceeded").
			WithHint("Functions call each other deeper than the server allows.")
	}
	restore, err := x.enter(ctx, f)
	if err != nil {
		x.depth--
		return nil, err
	}
	return func() error {
		x.depth--
		return restore()
	}, nil
}

// enter gives the session the role and the settings of a routine, and returns what takes them back.
func (x *routines) enter(ctx context.Context, f *catalog.RoutineDescriptor) (restore func() error, err error) {
	if !f.SecurityDefiner && len(f.Config) == 0 {
		return func() error { return nil }, nil
	}
	var undo []func() error
	restore = func() (err error) {
		for i := len(undo) - 1; i >= 0; i-- {
			if failed := undo[i](); err == nil {
				err = failed
			}
		}
		return err
	}
	if f.SecurityDefiner {
		undo = append(undo, x.acting.become(f.OwnerOID(), inDefiner))
	}
	for _, c := range f.Config {
		name, value, _ := strings.Cut(c, "=")
		before, err := x.settings.Get(name)
		if err == nil {
			err = x.settings.SetLocal(name, value)
		}
		if err != nil {
			_ = restore()
			return nil, err
		}
		undo = append(undo, func() error { return x.settings.SetLocal(name, before) })
	}
	return restore, nil
}

// become has the session act as another role until the function that it returns is called. within says where, for messages.
func (p *principal) become(role uint32, within string) func() error {
	outer, current := p.within, p.current
	p.within, p.current, p.permitted, p.access = within, role, nil, nil
	p.tx.resolver = nil // The search path is that of the role.
	return func() error {
		p.within, p.current, p.permitted, p.access = outer, current, nil, nil
		p.tx.resolver = nil
		p.update()
		return nil
	}
}

// lend is become for what the executor does in another role's name.
func (p *principal) lend(role uint32) (leave func()) {
	back := p.become(role, inDefiner)
	return func() { _ = back() }
}

// routineRows are the values of a function that returns a set. They implement builtin.SetRows, and plpgsql.Sink while they are computed.
type routineRows struct {
	env     *builtin.Env
	make    func(types.Row) types.Datum // makes a value of a row
	values  []types.Datum
	next    int
	pending int   // bytes not counted yet
	counted int64 // bytes that are pinned
}

// countRows is the number of bytes from which values of a set are counted.
const countRows = 64 << 10

// Row takes a row.
func (o *routineRows) Row(row types.Row) error {
	d := o.make(row)
	o.values = append(o.values, d)
	if o.pending += d.Size() + int(types.DatumBytes); o.pending < countRows {
		return nil
	}
	n := o.env.Counted()
	if err := o.env.Reserve(o.pending); err != nil {
		return err
	}
	n = o.env.Counted() - n
	o.env.Pin(n)
	o.counted += n
	o.pending = 0
	return nil
}

// Reset drops all rows: the statement runs again.
func (o *routineRows) Reset() {
	o.env.Unpin(o.counted)
	o.values, o.counted, o.pending = nil, 0, 0
}

// yield returns what takes the rows; nil: there is no set.
func (o *routineRows) yield() func(types.Row) error {
	if o == nil {
		return nil
	}
	return o.Row
}

// Next implements builtin.SetRows.
func (o *routineRows) Next(*builtin.Env) (types.Datum, bool, error) {
	if o.next == len(o.values) {
		return types.Null, false, nil
	}
	o.next++
	return o.values[o.next-1], true, nil
}

// valueMaker returns the function that makes a value of a call of a row of its columns.
func valueMaker(call *builtin.RoutineCall) func(types.Row) types.Datum {
	if call.Columns != nil {
		ts, names := make([]types.Type, len(call.Columns)), make([]string, len(call.Columns))
		for i, c := range call.Columns {
			ts[i], names[i] = c.Type, c.Name
		}
		return func(row types.Row) types.Datum { return types.NewNamedRecord(ts, names, row.Clone()) }
	}
	if ret := call.Ret.Underlying(); ret.IsComposite() {
		return func(row types.Row) types.Datum { return ret.Def.Row(row.Clone()) }
	}
	return func(row types.Row) types.Datum { return row[0].Clone() }
}

// callProcedure executes CALL. Outside of a transaction block the procedure may end transactions, unless another routine calls it.
func (x *statementRunner) callProcedure(ctx context.Context, r *run, w ResultWriter) (Tag, error) {
	t, h := x.tx, &x.commands.procedural
	tag := verb("CALL")
	if t.phase == failed {
		return tag, failedBlockError()
	}
	inner := r.text == nil && r.portal == nil
	ends := r.ends || !inner && !t.phase.shared() && t.pipeline.executed <= 1
	if !inner {
		if !t.phase.shared() {
			t.forgetUnused()
			t.phase.on(share)
		}
		outer := h.w
		h.w = w
		defer func() { h.w = outer }()
	}
	x.warnings.to = w
	if err := t.use(ctx); err != nil {
		return tag, err
	}
	inputs, err := x.authorizedInputs(ctx, r)
	if err != nil {
		return tag, err
	}
	p := r.plan.Procedure
	ev := expr.Context{Ctx: ctx, Env: x.env, Inputs: inputs}
	args := make(types.Row, len(p.Args))
	for i, a := range p.Args {
		d, err := a.Eval(&ev, nil)
		if err != nil {
			return tag, err
		}
		args[i] = d.Clone()
	}
	d, err := x.commands.routines.execute(ctx, p.Call, args, !ends, nil)
	if err != nil || !r.plan.Returns {
		return tag, err
	}
	if !r.quiet {
		if err := w.Columns(r.plan.Root.Columns(), r.formats, r.announce); err != nil {
			return tag, err
		}
	}
	row := make(types.Row, len(p.Call.Columns))
	if !d.IsNull() {
		copy(row, d.Record().Fields)
	}
	return tag, w.Row(row)
}
