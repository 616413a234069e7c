package plpgsql

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// returnValue executes RETURN.
func (a *activation) returnValue(s *returnStmt) error {
	a.returned = true
	if s.value == nil {
		return nil
	}
	d, t, err := a.eval(s.value)
	a.result, a.resultOf = d, t
	return err
}

// finish makes the result of a function.
func (a *activation) finish() (types.Datum, error) {
	sig := a.Signature
	switch {
	case sig.Set:
		return types.Null, nil
	case len(a.outs) > 0:
		return a.outputs()
	case sig.Proc:
		return types.Null, nil
	case sig.Returns.OID == types.OIDVoid:
		return types.Text(""), nil // Unlike that of a function in SQL it is not NULL.
	case sig.Trigger:
		return a.triggerResult()
	}
	a.doing = "while casting return value to function's return type"
	return a.asResult(a.result, a.resultOf)
}

// asResult converts a value to the type of the result.
func (a *activation) asResult(d types.Datum, from types.Type) (types.Datum, error) {
	to := a.Signature.Returns
	switch {
	case !isRow(to):
		return a.convert(d, from, to)
	case d.IsNull():
		return d, nil
	case !isRow(from):
		return d, pgerror.New(pgerror.DatatypeMismatch, "cannot return non-composite value from function returning composite type")
	case to.OID == types.OIDRecord && a.call.Columns == nil, to == from:
		return d, nil
	}
	rec := d.Record()
	have := recordShape(rec)
	want := a.call.Columns
	if to.OID != types.OIDRecord {
		want = shapeOf(to).types
	}
	fields, err := a.conform(rec.Fields, have.types, want, "returned record type does not match expected record type")
	if err != nil {
		return d, err
	}
	if to.OID != types.OIDRecord {
		return to.Underlying().Def.Row(fields), nil
	}
	return types.NewRecord(want, fields), nil
}

// conform checks that a row has the columns that are wanted.
func (a *activation) conform(row types.Row, have, want []types.Type, message string) (types.Row, error) {
	if len(have) != len(want) {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "%s", message).
			WithDetail("Number of returned columns (%d) does not match expected column count (%d).", len(have), len(want))
	}
	out := make(types.Row, len(want))
	for i := range want {
		if have[i].OID != want[i].OID {
			return nil, pgerror.New(pgerror.DatatypeMismatch, "%s", message).
				WithDetail("Returned type %s does not match expected type %s in column %d.", have[i], want[i], i+1)
		}
		out[i] = row[i]
	}
	return out, nil
}

// outputs makes the result of the output parameters: the value of the only one, or a row.
func (a *activation) outputs() (types.Datum, error) {
	if len(a.outs) == 1 && !a.Signature.Proc {
		return a.values[a.outs[0]], nil
	}
	row, ts, names := make(types.Row, len(a.outs)), make([]types.Type, len(a.outs)), make([]string, len(a.outs))
	for i, v := range a.outs {
		row[i], ts[i], names[i] = a.values[v], a.vars[v].typ, a.vars[v].name
		if names[i] == "" {
			names[i] = "column" + itoa(i+1)
		}
	}
	return types.NewNamedRecord(ts, names, row), nil
}

// triggerResult is the row that a trigger function returns.
func (a *activation) triggerResult() (types.Datum, error) {
	if a.result.IsNull() {
		return types.Null, nil
	}
	if !isRow(a.resultOf) {
		return types.Null, pgerror.New(pgerror.DatatypeMismatch, "cannot return non-composite value from function returning composite type")
	}
	if a.call.Trigger == nil || a.call.Trigger.Level != "ROW" || a.call.Trigger.When == "AFTER" {
		return a.result, nil
	}
	row := a.call.Trigger.Row
	rec := a.result.Record()
	if a.resultOf == row {
		return a.result, nil
	}
	a.doing = "during function exit"
	fields, err := a.conform(rec.Fields, recordShape(rec).types, shapeOf(row).types, "returned row structure does not match the structure of the triggering table")
	if err != nil {
		return types.Null, err
	}
	return row.Underlying().Def.Row(fields), nil
}

// yield passes a row of a set on.
func (a *activation) yield(row types.Row) error {
	if a.call.Yield == nil {
		return pgerror.New(pgerror.FeatureNotSupported, "set-valued function called in context that cannot accept a set")
	}
	a.rows++
	return a.call.Yield(row)
}

// setColumns are the columns that a set has to have, and whether they are those of a row.
func (a *activation) setColumns() ([]types.Type, bool) {
	switch {
	case len(a.outs) > 1:
		var ts []types.Type
		for _, v := range a.outs {
			ts = append(ts, a.vars[v].typ)
		}
		return ts, true
	case len(a.outs) == 1:
		return []types.Type{a.vars[a.outs[0]].typ}, false
	case a.Signature.Returns.OID == types.OIDRecord:
		return a.call.Columns, true
	case isRow(a.Signature.Returns):
		return shapeOf(a.Signature.Returns).types, true
	}
	return []types.Type{a.Signature.Returns}, false
}

func (a *activation) returnNext(s *returnNextStmt) error {
	columns, row := a.setColumns()
	if s.value == nil {
		if len(a.outs) == 0 {
			return pgerror.New(pgerror.SyntaxError, "RETURN NEXT must have a parameter")
		}
		out := make(types.Row, len(a.outs))
		for i, v := range a.outs {
			out[i] = a.values[v]
		}
		return a.yield(out)
	}
	d, t, err := a.eval(s.value)
	if err != nil {
		return err
	}
	if !row {
		if isRow(t) && !isRow(columns[0]) {
			return pgerror.New(pgerror.DatatypeMismatch, "wrong result type supplied in RETURN NEXT")
		}
		if d, err = a.convert(d, t, columns[0]); err != nil {
			return err
		}
		return a.yield(types.Row{d})
	}
	switch {
	case d.IsNull():
		return a.yield(make(types.Row, len(columns)))
	case !isRow(t):
		return pgerror.New(pgerror.DatatypeMismatch, "cannot return non-composite value from function returning composite type")
	}
	rec := d.Record()
	out, err := a.conform(rec.Fields, recordShape(rec).types, columns, "wrong record type supplied in RETURN NEXT")
	if err != nil {
		return err
	}
	return a.yield(out)
}

// yielding passes the rows of a query on.
type yielding struct {
	a    *activation
	have []types.Type
	want []types.Type
	sent int64
}

// Row implements Sink.
func (y *yielding) Row(row types.Row) error {
	out := row
	for i := range y.want {
		if y.have[i] != y.want[i] && y.want[i].Mod >= 0 && y.have[i].Mod != y.want[i].Mod {
			d, err := y.a.convert(row[i], y.have[i], y.want[i])
			if err != nil {
				return err
			}
			if len(out) > 0 && &out[0] == &row[0] {
				out = append(types.Row{}, row...)
			}
			out[i] = d
		}
	}
	y.sent++
	return y.a.call.Yield(out)
}

// Reset implements Sink. Rows that were passed on cannot be taken back: the query reads what it locked.
func (y *yielding) Reset() {}

func (a *activation) returnQuery(s *returnQueryStmt) error {
	var b *binding
	var f sqlFrame
	var err error
	var params types.Row
	shift := s.query.shift
	if s.dynamic {
		d, err := a.dynamicRows(s.query, s.using)
		if err != nil {
			return err
		}
		if yieldsRows(d.tree) {
			return a.returnUtility(d)
		}
		if b, err = a.planQuery(d, false); err != nil {
			return err
		}
		f, params, shift = d.frame, d.row, 0
	} else {
		e := s.query
		f = sqlFrame{e.kind, e.text}
		if e.refused != nil {
			return f.within(e.refused, 0)
		}
		if !planned(e.query) {
			return pgerror.New("42P11", "cannot open %s query as cursor", commandName(e.query))
		}
		if b, err = a.bound(e); err != nil {
			return err
		}
		params = a.inputsOf(b)
	}
	want, _ := a.setColumns()
	y := &yielding{a: a, want: want}
	for _, c := range b.plan.Planned().Root.Columns() {
		y.have = append(y.have, c.Type)
	}
	if _, err := a.conform(make(types.Row, len(y.have)), y.have, want, "structure of query does not match function result type"); err != nil {
		return err
	}
	if a.call.Yield == nil {
		return a.yield(nil)
	}
	if _, err := a.runBound(f, shift, b, params, 0, y); err != nil {
		return err
	}
	a.rows = y.sent
	a.setFound(y.sent > 0)
	return nil
}
