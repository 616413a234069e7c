package executor

import (
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// subplan is one subquery of the plan's expressions. Its operators are built at its first use. A correlated one is
// opened again for every outer row; the result of an uncorrelated one is kept for the rest of the statement.
type subplan struct {
	sub *expr.Subquery
	op  Operator

	haveScalar, haveExists, haveRows, haveSet bool

	scalar  types.Datum
	exists  bool
	rows    rowBuffer
	set     keySet // for Contains
	hasNull bool
	empty   bool
}

// subplan returns the running form of sub.
func (ex *execution) subplan(sub *expr.Subquery) (*subplan, error) {
	for len(ex.subplans) <= sub.ID {
		ex.subplans = append(ex.subplans, nil)
	}
	if s := ex.subplans[sub.ID]; s != nil {
		return s, nil
	}
	op, err := ex.buildSubquery(sub)
	if err != nil {
		return nil, err
	}
	s := &subplan{sub: sub, op: op, rows: rowBuffer{mem: &ex.mem, escapes: true}}
	s.set.keys.mem = &ex.mem
	ex.subplans[sub.ID] = s
	return s, nil
}

// forget drops the answers of a run.
func (s *subplan) forget() error {
	s.haveScalar, s.haveExists, s.haveRows, s.haveSet = false, false, false, false
	s.scalar, s.hasNull = types.Null, false
	s.rows.release()
	s.set.release()
	return s.op.Close()
}

// run opens the subquery for an outer row and passes its rows to visit until visit returns true.
func (ex *execution) run(s *subplan, in types.Row, visit func(types.Row) (stop bool, err error)) (err error) {
	ctx := ex.ev.Ctx
	// Values computed so far by the expression around the subquery are needed after it.
	pinned := ex.ev.Env.PinAll()
	defer ex.ev.Env.Pin(-pinned)
	ex.pushOuter(in)
	defer ex.popOuter()
	defer func() {
		if closeErr := s.op.Close(); err == nil {
			err = closeErr
		}
	}()
	if err := s.op.Open(ctx); err != nil {
		return err
	}
	for {
		row, err := s.op.Next(ctx)
		if row == nil || err != nil {
			return err
		}
		if stop, err := visit(row); stop || err != nil {
			return err
		}
		if err := ex.tick(ctx); err != nil {
			return err
		}
	}
}

// Scalar implements expr.SubqueryRunner.
func (ex *execution) Scalar(_ *expr.Context, sub *expr.Subquery, in types.Row) (types.Datum, error) {
	s, err := ex.subplan(sub)
	if err != nil {
		return types.Null, err
	}
	if s.haveScalar {
		return s.scalar, nil
	}
	value, n := types.Null, 0
	err = ex.run(s, in, func(row types.Row) (bool, error) {
		if n++; n > 1 {
			return true, pgerror.New(pgerror.CardinalityViolation, "more than one row returned by a subquery used as an expression")
		}
		value = row[0].Clone()
		return false, nil
	})
	if err != nil {
		return types.Null, err
	}
	if !sub.Correlated {
		s.scalar, s.haveScalar = value, true
	}
	return value, nil
}

// Exists implements expr.SubqueryRunner.
func (ex *execution) Exists(_ *expr.Context, sub *expr.Subquery, in types.Row) (bool, error) {
	s, err := ex.subplan(sub)
	if err != nil {
		return false, err
	}
	if s.haveExists {
		return s.exists, nil
	}
	found := false
	err = ex.run(s, in, func(types.Row) (bool, error) {
		found = true
		return true, nil
	})
	if err != nil {
		return false, err
	}
	if !sub.Correlated {
		s.exists, s.haveExists = found, true
	}
	return found, nil
}

// Rows implements expr.SubqueryRunner. The rows of a correlated subquery are valid until it is run
// for the next outer row.
func (ex *execution) Rows(_ *expr.Context, sub *expr.Subquery, in types.Row) ([]types.Row, error) {
	s, err := ex.subplan(sub)
	if err != nil {
		return nil, err
	}
	if s.haveRows {
		return s.rows.rows, nil
	}
	s.rows.reset()
	err = ex.run(s, in, func(row types.Row) (bool, error) { return false, s.rows.add(row) })
	if err != nil {
		return nil, err
	}
	s.haveRows = !sub.Correlated
	return s.rows.rows, nil
}

// Contains implements expr.SubqueryRunner.
func (ex *execution) Contains(_ *expr.Context, sub *expr.Subquery, v types.Row) (found, hasNull, empty bool, err error) {
	s, err := ex.subplan(sub)
	if err != nil {
		return false, false, false, err
	}
	if !s.haveSet {
		if err := ex.fillSet(s); err != nil {
			return false, false, false, err
		}
	}
	if !v[0].IsNull() && s.set.len() > 0 {
		found = s.set.find(v, s.set.cols.hash(v)) != 0
	}
	return found, s.hasNull, s.empty, nil
}

// fillSet hashes the subquery's values.
func (ex *execution) fillSet(s *subplan) error {
	s.set.cols = wholeRow(s.sub.Types)
	s.hasNull, s.empty = false, true
	err := ex.run(s, nil, func(row types.Row) (bool, error) {
		s.empty = false
		if row[0].IsNull() {
			s.hasNull = true
			return false, nil
		}
		_, _, err := s.set.add(row)
		return false, err
	})
	s.haveSet = err == nil
	return err
}
