package plpgsql

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// flow is how a statement ends.
type flow struct {
	kind  flowKind
	label string // of EXIT and CONTINUE; "": the innermost loop
}

type flowKind uint8

const (
	normalFlow flowKind = iota
	exitFlow
	continueFlow
	returnFlow
)

// run executes statements.
func (a *activation) run(list []stmt) (flow, error) {
	for _, s := range list {
		outer := a.stmt
		a.stmt = s
		f, err := a.execStmt(s)
		if err != nil {
			return f, err // stmt stays, for the context.
		}
		a.stmt = outer
		if f.kind != returnFlow && a.ev.Env.Counted() > 0 {
			a.ev.Env.NextRow() // Variables draw the memory of their values by themselves.
		}
		if f.kind != normalFlow {
			return f, nil
		}
	}
	return flow{}, nil
}

// execStmt executes a statement.
func (a *activation) execStmt(s stmt) (flow, error) {
	switch s := s.(type) {
	case *assignStmt:
		return flow{}, a.assignment(s)
	case *ifStmt:
		for i := range s.arms {
			ok, err := a.condition(s.arms[i].cond)
			if err != nil {
				return flow{}, err
			}
			if ok {
				return a.run(s.arms[i].body)
			}
		}
		return a.run(s.els)
	case *loopStmt:
		return a.loop(s.label, s.body, nil)
	case *whileStmt:
		return a.loop(s.label, s.body, func() (bool, error) { return a.condition(s.cond) })
	case *forIntStmt:
		return a.forInteger(s)
	case *exitStmt:
		return a.exit(s)
	case *block:
		return a.block(s)
	case *caseStmt:
		return a.caseStmt(s)
	case *returnStmt:
		return flow{kind: returnFlow}, a.returnValue(s)
	case *nullStmt:
		return flow{}, nil
	}
	return a.execRare(s)
}

func (a *activation) execRare(s stmt) (flow, error) {
	switch s := s.(type) {
	case *forQueryStmt:
		return a.forQuery(s)
	case *forCursorStmt:
		return a.forCursor(s)
	case *forEachStmt:
		return a.forEach(s)
	case *returnNextStmt:
		return flow{}, a.returnNext(s)
	case *returnQueryStmt:
		return flow{}, a.returnQuery(s)
	case *performStmt:
		return flow{}, a.perform(s)
	case *callStmt:
		return flow{}, a.callStmt(s)
	case *sqlStmt:
		return flow{}, a.sqlStmt(s)
	case *executeStmt:
		return flow{}, a.dynamic(s)
	case *diagStmt:
		return flow{}, a.diagnostics(s)
	case *raiseStmt:
		return flow{}, a.raise(s)
	case *assertStmt:
		return flow{}, a.assert(s)
	case *openStmt:
		return flow{}, a.open(s)
	case *fetchStmt:
		return flow{}, a.fetch(s)
	case *closeStmt:
		return flow{}, a.close(s)
	case *endTxnStmt:
		return flow{}, a.endTransaction(s)
	}
	return flow{}, pgerror.New(pgerror.InternalError, "no way to execute a %T", s)
}

// assignment executes target := value.
func (a *activation) assignment(s *assignStmt) error {
	e := s.value
	d, t, err := a.eval(e)
	if err != nil {
		return err
	}
	if len(e.target.path) > 0 { // The value is that of the whole.
		return a.assign(&target{variable: e.target.variable, field: e.target.field}, d, t)
	}
	if err = a.assign(e.target, d, t); err != nil && a.exprs[e.id].constant { // PostgreSQL converts it as it plans.
		err = a.inStatement(sqlFrame{e.kind, e.text}, err, e.shift)
	}
	return err
}

// ends reports whether a loop with a label ends after its body has ended with f, and what it ends with itself then.
func (f flow) ends(label string) (bool, flow) {
	switch f.kind {
	case exitFlow:
		if f.label == "" || f.label == label {
			return true, flow{}
		}
		return true, f
	case continueFlow:
		if f.label == "" || f.label == label {
			return false, flow{}
		}
		return true, f
	case returnFlow:
		return true, f
	}
	return false, flow{}
}

// iterate executes the body of a loop once, and reports whether the loop ends, and with what.
func (a *activation) iterate(label string, body []stmt) (done bool, out flow, err error) {
	f, err := a.run(body)
	if err != nil {
		return true, flow{}, err
	}
	done, out = f.ends(label)
	return done, out, nil
}

// loop executes LOOP and WHILE; while nil holds always.
func (a *activation) loop(label string, body []stmt, while func() (bool, error)) (flow, error) {
	for {
		if err := a.poll(); err != nil {
			return flow{}, err
		}
		if while != nil {
			if ok, err := while(); !ok || err != nil {
				return flow{}, err
			}
		}
		if done, out, err := a.iterate(label, body); done {
			return out, err
		}
	}
}

func (a *activation) forInteger(s *forIntStmt) (flow, error) {
	bound := func(e *expression, what string) (int64, error) {
		d, t, err := a.eval(e)
		if err == nil {
			d, err = a.convert(d, t, types.TInt4)
		}
		if err == nil && d.IsNull() {
			err = pgerror.New(pgerror.NullValueNotAllowed, "%s of FOR loop cannot be null", what)
		}
		return d.Int(), err
	}
	i, err := bound(s.from, "lower bound")
	if err != nil {
		return flow{}, err
	}
	to, err := bound(s.to, "upper bound")
	if err != nil {
		return flow{}, err
	}
	step := int64(1)
	if s.by != nil {
		if step, err = bound(s.by, "BY value"); err != nil {
			return flow{}, err
		}
		if step <= 0 {
			return flow{}, pgerror.New(pgerror.InvalidParameterValue, "BY value of FOR loop must be greater than zero")
		}
	}
	if s.reverse {
		step = -step
	}
	found := false
	out := flow{}
	for ; !s.reverse && i <= to || s.reverse && i >= to; i += step {
		if i > 1<<31-1 || i < -1<<31 {
			break
		}
		if err := a.poll(); err != nil {
			return flow{}, err
		}
		found = true
		a.values[s.variable] = types.Int(i)
		var done bool
		if done, out, err = a.iterate(s.label, s.body); err != nil {
			return flow{}, err
		} else if done {
			break
		}
	}
	a.values[a.found] = types.Bool(found)
	return out, nil
}

func (a *activation) exit(s *exitStmt) (flow, error) {
	if s.cond != nil {
		if ok, err := a.condition(s.cond); !ok || err != nil {
			return flow{}, err
		}
	}
	if s.exit {
		return flow{exitFlow, s.label}, nil
	}
	return flow{continueFlow, s.label}, nil
}

func (a *activation) caseStmt(s *caseStmt) (flow, error) {
	if s.operand != nil {
		d, t, err := a.eval(s.operand)
		if err != nil {
			return flow{}, err
		}
		a.caseOperand(s, d, t)
	}
	for i := range s.arms {
		ok, err := a.condition(s.arms[i].cond)
		if err != nil {
			return flow{}, err
		}
		if ok {
			a.clearCase(s)
			return a.run(s.arms[i].body)
		}
	}
	a.clearCase(s)
	if !s.hasElse {
		return flow{}, pgerror.New(caseNotFound, "case not found").WithHint("CASE statement is missing ELSE part.")
	}
	return a.run(s.els)
}

// caseOperand stores the operand of CASE. Its type is that of the variable from then on: conditions that were bound for another one are
// bound again.
func (a *activation) caseOperand(s *caseStmt, d types.Datum, t types.Type) {
	if a.caseTypes[s.value] != t {
		if a.caseTypes == nil {
			a.caseTypes = map[int]types.Type{} // Of the Code, whose bindings depend on it.
		}
		a.caseTypes[s.value] = t
		for i := range s.arms {
			a.exprs[s.arms[i].cond.id] = nil
		}
	}
	a.values[s.value] = d
}

func (a *activation) clearCase(s *caseStmt) {
	if s.value >= 0 {
		a.values[s.value] = types.Null
	}
}

// block executes a block: its declarations, its statements, and the handler for an error.
func (a *activation) block(b *block) (flow, error) {
	if err := a.initialize(b); err != nil {
		return flow{}, err
	}
	if b.handlers == nil {
		f, err := a.run(b.body)
		return f.leaves(b.label), err
	}
	f, err := a.guarded(b)
	return f.leaves(b.label), err
}

// leaves is the flow behind a block: EXIT with its label ends there.
func (f flow) leaves(label string) flow {
	if f.kind == exitFlow && f.label == label && label != "" {
		return flow{}
	}
	return f
}

// initialize gives the variables of a block their first values.
func (a *activation) initialize(b *block) error {
	if len(b.vars) == 0 {
		return nil
	}
	a.doing = "during statement block local variable initialization"
	for _, n := range b.vars {
		v := a.vars[n]
		a.doingAt = v.line
		if v.any() {
			a.shapes[n] = nil
		}
		if v.cursor != nil {
			a.values[n] = types.Text(v.name)
			continue
		}
		if v.def == nil {
			if err := a.setNull(n); err != nil {
				return err
			}
			continue
		}
		d, t, err := a.eval(v.def)
		if err == nil {
			err = a.assign(&target{variable: n}, d, t)
		}
		if err != nil {
			return err
		}
	}
	a.doing, a.doingAt = "", 0
	return nil
}

// setNull makes a variable NULL, which a domain may refuse.
func (a *activation) setNull(n int) error {
	v := a.vars[n]
	if v.typ.IsDomain() {
		d, err := a.convert(types.Null, v.typ.Underlying(), v.typ)
		if err != nil {
			return err
		}
		return a.store(n, d)
	}
	return a.store(n, types.Null)
}

// guarded executes a block with handlers, in a subtransaction.
func (a *activation) guarded(b *block) (flow, error) {
	a.doing = "during statement block entry"
	if err := a.host.Savepoint(a.ctx); err != nil {
		return flow{}, err
	}
	a.doing = ""
	a.subs++
	stack := a.host.Stack()
	depth := len(stack.frames)
	outer := a.stmt
	f, err := a.run(b.body)
	a.subs--
	if err == nil {
		a.host.Release()
		return f, nil
	}
	e, catchable := a.host.Explain(err)
	if !catchable {
		a.host.Release() // The whole statement fails.
		return flow{}, err
	}
	for _, h := range b.handlers {
		if !h.matches(e.Code) {
			continue
		}
		c := *e
		if !c.Complete {
			c.InContext("%s", stack.linesBelow(depth))
			c.Complete = true
		}
		a.host.RollbackTo()
		a.stmt, a.doing, a.doingAt = outer, "", 0
		return a.handle(b, h, &c)
	}
	a.host.RollbackTo()
	return flow{}, err
}

func (h *handler) matches(code pgerror.Code) bool {
	for _, c := range h.conditions {
		if c.matches(code) {
			return true
		}
	}
	return false
}

// handle executes a handler for an error.
func (a *activation) handle(b *block, h *handler, e *pgerror.Error) (flow, error) {
	a.values[b.state], a.values[b.message] = types.Text(string(e.Code)), types.Text(e.Message)
	outer := a.handled
	a.handled = e
	f, err := a.run(h.body)
	a.handled = outer
	return f, err
}

// endTransaction executes COMMIT and ROLLBACK.
func (a *activation) endTransaction(s *endTxnStmt) error {
	if a.call.Atomic {
		return pgerror.New(pgerror.InvalidTermination, "invalid transaction termination")
	}
	if a.subs > 0 {
		what := "roll back"
		if s.commit {
			what = "commit"
		}
		return pgerror.New(pgerror.InvalidTermination, "cannot %s while a subtransaction is active", what)
	}
	return a.host.EndTransaction(a.ctx, s.commit, s.chain)
}

func (a *activation) assert(s *assertStmt) error {
	if a.host.Options().AssertsOff {
		return nil
	}
	ok, err := a.condition(s.cond)
	if ok || err != nil {
		return err
	}
	message := "assertion failed"
	if s.message != nil {
		d, t, err := a.eval(s.message)
		if err != nil {
			return err
		}
		if !d.IsNull() {
			if message, err = a.text(d, t); err != nil {
				return err
			}
		}
	}
	return pgerror.New(assertFailure, "%s", message)
}

// text returns the text of a value.
func (a *activation) text(d types.Datum, t types.Type) (string, error) {
	if d.IsNull() {
		return "", nil
	}
	return string(types.AppendText(nil, d, t, &a.ev.Env.Format)), nil
}
