package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// pathMode is what setPath does at the end of the path.
type pathMode uint8

const (
	pathDelete       pathMode = 1 << iota
	pathReplace               // only what exists
	pathCreate                // and what does not: jsonb_set
	pathInsertBefore          // array elements, members that do not exist: jsonb_insert
	pathInsertAfter
	pathConsistent // an array takes no element before its first: assignment to subscripts
	pathFillGaps   // arrays are filled up with null, and missing containers created: assignment to subscripts

	pathInsert       = pathInsertBefore | pathInsertAfter
	pathCreateOrFill = pathCreate | pathInsert
)

// pathSetter changes the part of a value at a path.
type pathSetter struct {
	env  *Env
	b    *jsonb.Builder
	path []types.Datum // text
	mode pathMode
	new  jsonb.Value
}

// setPath returns v with what is at the path deleted, replaced or inserted.
func setPath(env *Env, v jsonb.Value, path []types.Datum, new jsonb.Value, mode pathMode) (types.Datum, error) {
	if len(path) > jsonb.MaxDepth {
		return types.Null, jsonb.ErrTooDeep()
	}
	return buildJSONB(env, len(v)+len(new)+(v.Len()+len(path))*jsonb.ItemBytes, func(b *jsonb.Builder) error {
		s := &pathSetter{env: env, b: b, path: path, new: new, mode: mode}
		return s.set(v, 0)
	})
}

func (s *pathSetter) errNull(level int) error {
	return pgerror.New(pgerror.NullValueNotAllowed, "path element at position %d is null", level+1)
}

// set adds v, changed at the rest of the path from level.
func (s *pathSetter) set(v jsonb.Value, level int) error {
	if err := s.env.Step(comparisonSteps * (v.Len() + 1)); err != nil {
		return err
	}
	if level < len(s.path) && s.path[level].IsNull() {
		return s.errNull(level)
	}
	switch {
	case level >= len(s.path):
		s.b.Value(v)
		return nil
	case v.Kind() == jsonb.Object:
		s.b.BeginObject()
		if err := s.object(v, level); err != nil {
			return err
		}
		return s.b.End()
	case v.Kind() == jsonb.Array:
		s.b.BeginArray()
		if err := s.array(v, level); err != nil {
			return err
		}
		return s.b.End()
	}
	if s.mode&pathFillGaps != 0 {
		return pgerror.New(pgerror.InvalidParameterValue, "cannot replace existing key").
			WithDetail("The path assumes key is a composite object, but it is a scalar value.")
	}
	s.b.Value(v)
	return nil
}

func (s *pathSetter) last(level int) bool { return level == len(s.path)-1 }

func (s *pathSetter) object(v jsonb.Value, level int) error {
	want := s.path[level].Text()
	found := false
	for key, member := range v.Members {
		if string(key) != want {
			if err := s.member(types.Bytes(key).Text(), member); err != nil {
				return err
			}
			continue
		}
		found = true
		if !s.last(level) {
			if err := s.b.Key(want); err != nil {
				return err
			}
			if err := s.set(member, level+1); err != nil {
				return err
			}
			continue
		}
		if s.mode&pathInsert != 0 {
			return pgerror.New(pgerror.InvalidParameterValue, "cannot replace existing key").
				WithHint("Try using the function jsonb_set to replace key value.")
		}
		if s.mode&pathDelete == 0 {
			if err := s.member(want, s.new); err != nil {
				return err
			}
		}
	}
	switch {
	case found:
		return nil
	case s.last(level) && s.mode&pathCreateOrFill != 0:
		return s.member(want, s.new)
	case !s.last(level) && s.mode&pathFillGaps != 0:
		if err := s.b.Key(want); err != nil {
			return err
		}
		return s.create(level + 1)
	}
	return nil
}

func (s *pathSetter) member(key string, v jsonb.Value) error {
	if err := s.b.Key(key); err != nil {
		return err
	}
	s.b.Value(v)
	return nil
}

// place returns the place in an array of n elements that the path names at level. It may be before the first or behind
// the last.
func (s *pathSetter) place(n, level int) (int64, error) {
	text := s.path[level].Text()
	at, ok := pathIndex(text)
	if !ok {
		return 0, pgerror.New(pgerror.InvalidTextRepresentation, "path element at position %d is not an integer: \"%s\"", level+1, text)
	}
	if at >= 0 {
		return at, nil
	}
	if -at > int64(n) && s.mode&pathConsistent != 0 {
		return 0, pgerror.New(pgerror.InvalidParameterValue, "path element at position %d is out of range: %d", level+1, at)
	}
	return at + int64(n), nil
}

func (s *pathSetter) array(v jsonb.Value, level int) error {
	n := v.Len()
	at, err := s.place(n, level)
	if err != nil {
		return err
	}
	creates := s.mode&pathCreateOrFill != 0
	if at < 0 && s.last(level) && creates { // before the first
		s.b.Value(s.new)
	}
	i := int64(-1)
	for _, member := range v.Members {
		if i++; i != at {
			s.b.Value(member)
			continue
		}
		if err := s.element(member, level); err != nil {
			return err
		}
	}
	if at < int64(n) {
		return nil
	}
	return s.behind(int64(n), at, level)
}

// element adds the array element that the path names at level.
func (s *pathSetter) element(v jsonb.Value, level int) error {
	if !s.last(level) {
		return s.set(v, level+1)
	}
	if s.mode&(pathInsertBefore|pathReplace|pathCreate) != 0 {
		s.b.Value(s.new)
	}
	if s.mode&pathInsert != 0 {
		s.b.Value(v)
	}
	if s.mode&pathInsertAfter != 0 {
		s.b.Value(s.new)
	}
	return nil
}

// behind adds the new value behind the end of an array of n elements, for which the path names the place at.
func (s *pathSetter) behind(n, at int64, level int) error {
	last := s.last(level)
	if !last && s.mode&pathFillGaps == 0 || last && s.mode&pathCreateOrFill == 0 {
		return nil
	}
	if s.mode&pathFillGaps != 0 {
		if err := s.nulls(at - n); err != nil {
			return err
		}
	}
	if last {
		s.b.Value(s.new)
		return nil
	}
	return s.create(level + 1)
}

// nulls adds n nulls.
func (s *pathSetter) nulls(n int64) error {
	if err := s.env.Reserve(int(min(n*jsonb.ItemBytes, MaxValueBytes+1))); err != nil {
		return err
	}
	for range n {
		s.b.Value(jsonb.NullValue)
	}
	return nil
}

// create adds the containers that the path names from level, and the new value in the innermost.
func (s *pathSetter) create(level int) error {
	if level == len(s.path) {
		s.b.Value(s.new)
		return nil
	}
	if s.path[level].IsNull() {
		return s.errNull(level)
	}
	at, isIndex := pathIndex(s.path[level].Text())
	if !isIndex {
		s.b.BeginObject()
		if err := s.b.Key(s.path[level].Text()); err != nil {
			return err
		}
	} else {
		s.b.BeginArray()
		if err := s.nulls(max(at, 0)); err != nil {
			return err
		}
	}
	if err := s.create(level + 1); err != nil {
		return err
	}
	return s.b.End()
}

func jsonbDeletePath(env *Env, a []types.Datum) (types.Datum, error) {
	v, path := a[0].JSONB(), a[1].Array().Elems
	if !v.IsContainer() {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot delete path in scalar")
	}
	if v.Len() == 0 || len(path) == 0 {
		return a[0], nil
	}
	return setPath(env, v, path, nil, pathDelete)
}

// JSONBAssignment returns the function of an assignment to a part of a jsonb: of the value as it was, the new value of the
// part, and its n subscripts as text. array: NULL becomes an array, not an object.
func JSONBAssignment(n int, array bool) *Overload {
	o := &Overload{Name: "jsonb_assignment", Args: []types.Type{types.TJSONB, types.TJSONB}, Ret: types.TJSONB}
	for range n {
		o.Args = append(o.Args, types.TText)
	}
	o.Fn = func(env *Env, a []types.Datum) (types.Datum, error) {
		value := jsonb.NullValue
		for _, step := range a[2:] {
			if step.IsNull() {
				return types.Null, pgerror.New(pgerror.NullValueNotAllowed, "jsonb subscript in assignment must not be null")
			}
		}
		if !a[1].IsNull() {
			value = a[1].JSONB()
		}
		if !a[0].IsNull() {
			return setPath(env, a[0].JSONB(), a[2:], value, pathCreate|pathFillGaps|pathConsistent)
		}
		var b jsonb.Builder
		if array {
			b.BeginArray()
		} else {
			b.BeginObject()
		}
		if err := b.End(); err != nil {
			return types.Null, err
		}
		return setPath(env, b.Finish(), a[2:], value, pathCreate|pathFillGaps|pathConsistent)
	}
	return o
}
