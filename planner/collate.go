package planner

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// collationMismatch is PostgreSQL's SQLSTATE for collations that contradict each other.
const collationMismatch pgerror.Code = "42P21"

// ResolveCollation returns the collation that a name means, as PostgreSQL finds it.
func ResolveCollation(name []string, r catalog.Resolver, pos int) (*collation.Collation, error) {
	schema, last := "", name[len(name)-1]
	if len(name) > 1 {
		schema = name[len(name)-2]
		if _, exists := r.Grants().Schemas[schema]; !exists {
			return nil, pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema).At(pos)
		}
	}
	if c := catalog.FindCollation(r, schema, last); c != nil {
		return c, nil
	}
	full := last
	if schema != "" {
		full = schema + "." + last
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "collation \"%s\" for encoding \"UTF8\" does not exist", full).At(pos)
}

// CollateType returns t with the collation that a definition names; no name: its own.
func CollateType(t types.Type, name []string, r catalog.Resolver, pos int) (types.Type, error) {
	if len(name) == 0 {
		return t, nil
	}
	if !t.Collatable() {
		return t, pgerror.New(pgerror.DatatypeMismatch, "collations are not supported by type %s", builtin.TypeName(t)).At(pos)
	}
	c, err := ResolveCollation(name, r, pos)
	if err != nil {
		return t, err
	}
	return t.Collated(c.Plain()), nil
}

// collate binds X COLLATE name.
func (sc *scope) collate(e *ast.Collate) (expr.Scalar, error) {
	x, err := sc.expr(e.X)
	if err != nil {
		return nil, err
	}
	pos := int(e.Pos)
	if x.Type().OID == types.OIDUnknown {
		if x, err = sc.b.coerce(x, types.TText, castImplicit, pos); err != nil {
			return nil, err
		}
	}
	if !x.Type().Collatable() {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "collations are not supported by type %s", builtin.TypeName(x.Type())).At(pos)
	}
	if n := len(e.Name); n > 1 && sc.b.opts.Access != nil && sc.b.opts.Access.Schema(e.Name[n-2], acl.Usage) == 0 {
		if _, exists := sc.b.r.Grants().Schemas[e.Name[n-2]]; exists {
			return nil, SchemaDenied(e.Name[n-2], pos)
		}
	}
	c, err := ResolveCollation(e.Name, sc.b.r, pos)
	if err != nil {
		return nil, err
	}
	return &expr.Cast{X: x, Typ: x.Type().Collated(c.Explicit()), Collate: max(pos, 1)}, nil
}

// inputCollation derives the collation of an operation over values; nil is the default. Its error is that of two explicit ones that
// differ.
func inputCollation(args []expr.Scalar, pos []int) (*collation.Collation, error) {
	plain := true
	for _, x := range args {
		plain = plain && x.Type().Coll == nil
	}
	if plain {
		return nil, nil
	}
	c := collation.None
	for i, x := range args {
		t := x.Type()
		if !t.Collatable() && t.OID != types.OIDUnknown {
			continue
		}
		next := t.Collation()
		at := 0
		if col, ok := x.(*expr.Column); ok {
			at = col.Pos
		} else if i < len(pos) {
			at = pos[i]
		}
		merged, ok := collation.Merge(c, next, at)
		if !ok {
			return nil, pgerror.New(collationMismatch, "collation mismatch between explicit collations \"%s\" and \"%s\"", c, next).
				At(explicitAt(x))
		}
		c = merged
	}
	return c, nil
}

// explicitAt returns where the first COLLATE in an expression is.
func explicitAt(x expr.Scalar) (pos int) {
	expr.Walk(x, func(s expr.Scalar) bool {
		if c, ok := s.(*expr.Cast); ok && pos == 0 {
			pos = c.Collate
		}
		return pos == 0
	})
	return pos
}

// collated gives an operation over args, which stands at pos, the collation that follows from theirs.
func collated(x expr.Scalar, pos int, args ...expr.Scalar) (expr.Scalar, error) {
	c, err := inputCollation(args, nil)
	if c == nil || err != nil {
		return x, err
	}
	switch x := x.(type) {
	case *expr.Compare:
		switch {
		case !x.Class.Collatable():
			return x, nil
		case c.Undetermined():
			return undetermined(x.Op.String(), "string comparison", x.L, x.R), nil
		}
		return x.Collated(c.Plain()), nil
	case *expr.Call:
		call := *x
		call.Fn = x.Fn.Collated(c)
		return &call, nil
	}
	return x, nil
}

// undetermined is an operation that fails when it is evaluated.
func undetermined(name, what string, l, r expr.Scalar) expr.Scalar {
	return &expr.Call{Fn: builtin.UndeterminedCall(name, what, []types.Type{l.Type(), r.Type()}), Args: []expr.Scalar{l, r}}
}

// collatedAggregate gives an aggregate the collation of its arguments.
func collatedAggregate(fn *builtin.Aggregate, args []expr.Scalar) (*builtin.Aggregate, error) {
	c, err := inputCollation(args, nil)
	if c == nil || err != nil {
		return fn, err
	}
	if c.Undetermined() && fn.FirstByOrder != 0 {
		return nil, builtin.Undetermined("string comparison")
	}
	return fn.Collated(c), nil
}

// commonCollation gives the common type of values the collation that follows from theirs.
func commonCollation(t types.Type, es []expr.Scalar, pos []int) (types.Type, error) {
	c, err := inputCollation(es, pos)
	if err != nil {
		return t, err
	}
	if t.Collatable() {
		t.Coll = c
	}
	return t, nil
}

// withCollationOf gives the target of a cast the collation of the value, unless it is a domain with its own.
func withCollationOf(t types.Type, x expr.Scalar) types.Type {
	if c := x.Type().Coll; c != nil && t.Coll == nil && t.Collatable() {
		t.Coll = c
	}
	return t
}

// requireCollation fails for values that are sorted or grouped, and whose collation could not be derived.
func requireCollation(t types.Type, what string) error {
	if !t.Coll.Undetermined() {
		return nil
	}
	if a, b, pos, ok := t.Coll.Between(); ok {
		return pgerror.New(collationMismatch, "collation mismatch between implicit collations \"%s\" and \"%s\"", a, b).
			WithHint("You can choose the collation by applying the COLLATE clause to one or both expressions.").At(pos)
	}
	return builtin.Undetermined(what)
}

// collationFor is COLLATION FOR (x).
func (b *binder) collationFor(x expr.Scalar) (expr.Scalar, error) {
	t := x.Type()
	if t.OID == types.OIDUnknown {
		return expr.NewNull(types.TText), nil
	}
	if !t.Collatable() {
		return nil, pgerror.New(pgerror.DatatypeMismatch, "collations are not supported by type %s", builtin.TypeName(t))
	}
	c := t.Collation()
	if c.Undetermined() {
		return expr.NewNull(types.TText), nil
	}
	return &expr.Const{Value: types.Text(catalog.WrittenCollation(b.r, c)), Typ: types.TText}, nil
}

// recursiveCollation fails if a column of a recursive query has another collation than its non-recursive term.
func (b *binder) recursiveCollation(name string, i int, init, step *query) error {
	first, next := b.derivedColumn(init, i), b.derivedColumn(step, i)
	c, err := inputCollation([]expr.Scalar{first, next}, nil)
	if err != nil || c.Undetermined() || c.Plain() == first.Typ.Coll.Plain() {
		return at(err, step.cols[i].collateAt)
	}
	return pgerror.New(collationMismatch, "recursive query \"%s\" column %d has collation \"%s\" in non-recursive term but collation \"%s\" overall",
		name, i+1, first.Typ.Coll, c).
		WithHint("Use the COLLATE clause to set the collation of the non-recursive term.").At(first.Pos)
}
