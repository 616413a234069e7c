package planner

import (
	"slices"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
)

// ProcedureCall is what CALL does: the session executes the procedure, outside of any operator.
type ProcedureCall struct {
	Call *builtin.RoutineCall
	Args []expr.Scalar // over no row
	// Outputs are the arguments in the text that stand for the result's columns, -1 for none.
	Outputs []int
}

// planCall plans CALL. The root has the columns of the result, and no rows.
func (p *physical) planCall(plan *Plan, s *ast.CallProcedure, outer *scope) error {
	b, e, pos := p.b, s.Call, int(s.Call.Pos)
	f, err := b.funcName(e)
	if err != nil {
		return err
	}
	sc := newScope(b, outer)
	sc.in("CALL arguments", false, false)
	site, args, err := sc.site(e)
	if err != nil {
		return err
	}
	site.Call = true
	for i, x := range args {
		if expr.HasSubquery(x) {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot use subquery in CALL argument").At(startOf(e.Args[i]))
		}
	}
	m, err := matchProcedure(f, site, e)
	if err != nil {
		return at(err, pos)
	}
	call, args, err := b.routineArgs(m, args, pos)
	if err != nil {
		return err
	}
	if len(call.Columns) > 0 && len(b.opts.Rows) > 0 && b.opts.Rows[0].Open {
		return pgerror.New(pgerror.FeatureNotSupported, "calling procedures with output arguments is not supported in SQL functions")
	}
	if err := b.checkParams(); err != nil {
		return err
	}
	b.called(call)
	root := &Values{}
	for _, c := range call.Columns {
		root.Out = append(root.Out, Column{Name: c.Name, Type: c.Type})
	}
	plan.Root, plan.Tag, plan.Returns = root, "CALL", len(call.Columns) > 0
	plan.Procedure = &ProcedureCall{Call: call, Args: p.compileAll(args, nil), Outputs: outputArguments(m)}
	return p.err
}

// outputArguments are the arguments of a CALL that stand for the output parameters.
func outputArguments(m *builtin.RoutineMatch) (out []int) {
	for slot := range m.Routine.Params {
		if m.Routine.Params[slot].Out() {
			out = append(out, slices.Index(m.Places, slot))
		}
	}
	return out
}

// matchProcedure finds the procedure of a CALL.
func matchProcedure(f builtin.FuncName, site builtin.CallSite, e *ast.Call) (*builtin.RoutineMatch, error) {
	m, err := f.MatchRoutine(site)
	if err == nil && m != nil && m.Routine.Kind == builtin.ProcedureRoutine {
		return m, nil
	}
	name := ""
	if err == nil && m != nil {
		name = builtin.CallSignature(f.String(), m.Routine.InputTypes())
	} else if fn, failed := (builtin.FuncName{Schema: f.Schema, Name: f.Name, From: f.From}).Resolve(site.Args); failed == nil && len(f.User) == 0 {
		name = builtin.CallSignature(f.String(), fn.Args)
	}
	switch {
	case name != "":
		return nil, pgerror.New(pgerror.WrongObjectType, "%s is not a procedure", name).WithHint("To call a function, use SELECT.")
	case err == nil:
		err = pgerror.New(pgerror.UndefinedFunction, "procedure %s does not exist", builtin.CallSignature(f.String(), site.Args)).
			WithHint("No procedure matches the given name and argument types. You might need to add explicit type casts.")
	}
	return nil, err
}
