package builtin

import (
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// UserCast is a cast that a user has defined. Immutable.
type UserCast struct {
	OID      types.OID
	From, To types.Type
	Context  CastContext
	// Method is as in pg_cast.castmethod: f by a function, i through the text form, b the value is the same.
	Method byte
	// Routine is the function, or System, one of PostgreSQL: exactly one is given if Method is f.
	Routine *Routine
	System  *Overload
}

// Casts are the casts that users have defined. Nil: there are none. Immutable.
type Casts struct{ byTypes map[castKey]*UserCast }

// NewCasts returns the casts of a list.
func NewCasts(list []*UserCast) *Casts {
	if len(list) == 0 {
		return nil
	}
	s := &Casts{byTypes: make(map[castKey]*UserCast, len(list))}
	for _, u := range list {
		s.byTypes[castKey{u.From.OID, u.To.OID}] = u
	}
	return s
}

// lookup returns the cast between two types that a user has defined, nil if none has.
func (s *Casts) lookup(from, to types.OID) *UserCast {
	if s == nil {
		return nil
	}
	return s.byTypes[castKey{from, to}]
}

// User returns the OID of the cast that a user has defined, 0 for one of PostgreSQL's own.
func (c *Cast) User() types.OID {
	switch {
	case c.inner != nil:
		return c.inner.User()
	case c.user == nil:
		return 0
	}
	return c.user.OID
}

// ThroughText reports whether a cast between two types goes through the text form because nobody has defined one.
func (c *Cast) ThroughText() bool {
	return c.kind == castIO && c.user == nil && c.From.OID != types.OIDUnknown
}

// Routine returns the routine of a user that casts a value, nil if none does.
func (c *Cast) Routine() *Routine {
	switch {
	case c.inner != nil:
		return c.inner.Routine()
	case c.user == nil:
		return nil
	}
	return c.user.Routine
}

// Match returns the call of the routine of a user that casts a value and takes nothing but the value; nil if there is none.
func (c *Cast) Match() *RoutineMatch {
	if c.call == nil || len(c.call.Args) != 1 {
		return nil
	}
	return c.call.Routine.matchAll()
}

// Limits reports whether the modifier of the target is still to be applied to what the cast's function returns.
func (c *Cast) Limits() bool { return c.mod }

// byUser makes c the cast that a user has defined, and reports whether it can be made.
func (c *Cast) byUser(u *UserCast) bool {
	c.user = u
	switch u.Method {
	case 'i':
		c.kind = castIO
		return true
	case 'b':
		if fn, differs := sameBytes(u.From, u.To); differs {
			c.kind, c.fn, c.binary = castFunc, fn, true
		}
		return true
	}
	args := []types.Datum{types.Null, types.Int(int64(c.To.Mod)), types.Bool(c.Context == Explicit)}
	var call func(*Env, []types.Datum) (types.Datum, error)
	n, strict := 0, false
	if u.Routine != nil {
		m := u.Routine.matchAll()
		slots := append([]types.Type{u.From}, m.declared[1:]...)
		resolved, _, err := m.Resolve(slots)
		if err != nil {
			return false
		}
		c.call, c.fixed = resolved, u.Routine.Volatility
		call, n, strict = resolved.call, len(slots), u.Routine.Strict
	} else {
		o, err := u.System.resolved(append([]types.Type{u.From}, u.System.Args[1:]...))
		if err != nil {
			return false
		}
		c.fixed = o.Volatility
		call, n, strict = o.Fn, len(o.Args), o.Strict
	}
	args = args[:n]
	c.mod = c.mod && n == 1
	c.kind, c.fn = castFunc, func(env *Env, a []types.Datum) (types.Datum, error) {
		own := make([]types.Datum, n) // The function may cast values itself.
		copy(own, args)
		if own[0] = a[0]; strict && own[0].IsNull() {
			return types.Null, nil
		}
		return call(env, own)
	}
	return true
}

// SameBytes reports whether values of two types can be taken for each other, as WITHOUT FUNCTION does.
func SameBytes(from, to types.Type) bool {
	_, differs := sameBytes(from, to)
	return differs || from.Underlying().KindOf() == to.Underlying().KindOf()
}

// sameBytes returns the function that makes a datum of one type that of another with the same bytes, if their datums differ.
func sameBytes(from, to types.Type) (fn Func, differs bool) {
	text := func(t types.Type) bool {
		return t.OID == types.OIDText || t.OID == types.OIDVarchar || t.OID == types.OIDBPChar
	}
	switch {
	case text(from) && to.OID == types.OIDBytea:
		return func(_ *Env, a []types.Datum) (types.Datum, error) { return types.Bytes([]byte(a[0].Text())), nil }, true
	case from.OID == types.OIDBytea && text(to):
		return func(env *Env, a []types.Datum) (types.Datum, error) {
			return env.ParseText(types.TText, string(a[0].Bytes()))
		}, true
	case reinterpret(from.OID, to.OID) != nil && from.KindOf() == types.KindInt:
		return reinterpret(from.OID, to.OID), true
	}
	return nil, false
}

// HasCast reports whether PostgreSQL has a cast between two types of its own.
func HasCast(from, to types.Type) bool {
	_, ok := pgdata.Casts().Find(formatOID(from.OID), formatOID(to.OID))
	return ok
}
