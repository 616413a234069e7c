package plpgsql

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// assign stores a value in a target that is no list.
func (a *activation) assign(t *target, d types.Datum, from types.Type) error {
	v := a.vars[t.variable]
	if t.field != "" {
		return a.assignField(t, d, from)
	}
	if v.record {
		return a.assignRow(t.variable, d, from)
	}
	return a.assignScalar(t.variable, d, from)
}

// assignScalar stores a value in a variable that is no row.
func (a *activation) assignScalar(n int, d types.Datum, from types.Type) error {
	v := a.vars[n]
	if from != v.typ {
		var err error
		if d, err = a.convert(d, from, v.typ); err != nil {
			return err
		}
	}
	if v.notNull && d.IsNull() {
		return pgerror.New(pgerror.NullValueNotAllowed, "null value cannot be assigned to variable \"%s\" declared NOT NULL", v.name)
	}
	return a.store(n, d)
}

// store keeps a value. Large ones draw memory for as long as they are the variable's.
func (a *activation) store(n int, d types.Datum) error {
	if old := a.values[n]; d.Large() || old.Large() {
		if err := a.account(old, d); err != nil {
			return err
		}
	}
	a.values[n] = d
	return nil
}

// account replaces what a value draws by what another one draws.
func (a *activation) account(old, d types.Datum) error {
	env := a.host.Env()
	if env.Memory == nil {
		return nil
	}
	change := int64(0)
	if d.Large() {
		change += int64(d.Size())
	}
	if old.Large() {
		change -= int64(old.Size())
	}
	if change > 0 {
		if err := env.Memory.Grow(change); err != nil {
			return err
		}
	} else {
		change = max(change, -a.large)
		env.Memory.Shrink(-change)
	}
	a.large += change
	return nil
}

// assignField stores a value in a field of a row.
func (a *activation) assignField(t *target, d types.Datum, from types.Type) error {
	v, sh := a.vars[t.variable], a.shapes[t.variable]
	if sh == nil {
		return notAssigned(v.name)
	}
	i := sh.find(t.field)
	if i < 0 {
		return noField(v.name, t.field)
	}
	d, err := a.convert(d, from, sh.types[i])
	if err != nil {
		return err
	}
	fields := make(types.Row, len(sh.types))
	if old := a.values[t.variable]; !old.IsNull() {
		copy(fields, old.Record().Fields)
	}
	fields[i] = d
	return a.storeRow(t.variable, fields)
}

// storeRow stores fields of the variable's shape.
func (a *activation) storeRow(n int, fields types.Row) error {
	v, sh := a.vars[n], a.shapes[n]
	if !v.any() {
		d := v.typ.Underlying().Def.Row(fields)
		if v.typ.IsDomain() {
			var err error
			if d, err = a.convert(d, v.typ.Underlying(), v.typ); err != nil {
				return err
			}
		}
		return a.store(n, d)
	}
	return a.store(n, types.NewNamedRecord(sh.types, sh.names, fields))
}

// assignRow stores a value, which must be a row, in a row variable.
func (a *activation) assignRow(n int, d types.Datum, from types.Type) error {
	v := a.vars[n]
	if !isRow(from) && !(d.IsNull() && (from.OID == types.OIDUnknown || from.OID == types.OIDText)) {
		return pgerror.New(pgerror.DatatypeMismatch, "cannot assign non-composite value to a record variable")
	}
	if d.IsNull() {
		if v.notNull {
			return pgerror.New(pgerror.NullValueNotAllowed, "null value cannot be assigned to variable \"%s\" declared NOT NULL", v.name)
		}
		if v.any() {
			a.shapes[n] = nil
			if from.Underlying().IsComposite() {
				a.shapes[n] = shapeOf(from)
			}
		}
		return a.store(n, types.Null)
	}
	if from.Underlying() == v.typ && !v.any() {
		return a.store(n, d)
	}
	rec := d.Record()
	sh := recordShape(rec)
	if from.Underlying().IsComposite() {
		sh = shapeOf(from)
	}
	return a.assignFields(n, rec.Fields, sh)
}

// assignFields stores the fields of a row of some shape in a row variable.
func (a *activation) assignFields(n int, fields types.Row, sh *shape) error {
	if a.vars[n].any() {
		if a.shapes[n] == nil || !a.shapes[n].same(sh) {
			a.shapes[n] = sh
		}
		return a.storeRow(n, append(types.Row{}, fields[:len(sh.types)]...))
	}
	own := a.shapes[n]
	if err := a.countFields(len(sh.types), len(own.types)); err != nil {
		return err
	}
	out := make(types.Row, len(own.types))
	for i := range own.types {
		if i >= len(sh.types) {
			break
		}
		var err error
		if out[i], err = a.convert(fields[i], sh.types[i], own.types[i]); err != nil {
			return err
		}
	}
	return a.storeRow(n, out)
}

// countFields reports an assignment of so many fields to so many others, if the extra check for that is on.
func (a *activation) countFields(from, to int) error {
	o := a.host.Options()
	if from == to || !o.checks(StrictMultiAssignment) {
		return nil
	}
	which := "extra_warnings"
	if o.Errors&StrictMultiAssignment != 0 {
		which = "extra_errors"
	}
	e := pgerror.New(pgerror.DatatypeMismatch, "number of source and target fields in assignment does not match").
		WithDetail("strict_multi_assignment check of %s is active.", which).
		WithHint("Make sure the query returns the exact list of columns.")
	return o.extra(StrictMultiAssignment, e, a.warn)
}

// assignTargets stores the columns of a row of a query; nil: the query has none.
func (a *activation) assignTargets(t *target, row types.Row, sh *shape) error {
	if t.list == nil {
		if row == nil {
			if a.vars[t.variable].any() {
				a.shapes[t.variable] = sh
			}
			return a.storeRow(t.variable, make(types.Row, len(a.shapes[t.variable].types)))
		}
		// A single column that is a row is assigned as a whole.
		if len(sh.types) == 1 && isRow(sh.types[0]) {
			return a.assignRow(t.variable, row[0], sh.types[0])
		}
		return a.assignFields(t.variable, row, sh)
	}
	if row != nil {
		if err := a.countFields(len(sh.types), len(t.list)); err != nil {
			return err
		}
	}
	for i, x := range t.list {
		d, from := types.Null, types.TUnknown
		if i < len(sh.types) && row != nil {
			d, from = row[i], sh.types[i]
		}
		if d.IsNull() && from.OID == types.OIDUnknown {
			from = types.TText
			if !a.vars[x.variable].record && x.field == "" {
				from = a.vars[x.variable].typ
			}
		}
		if err := a.assign(x, d, from); err != nil {
			return err
		}
	}
	return nil
}
