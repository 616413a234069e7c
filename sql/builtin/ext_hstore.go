package builtin

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// The errors of arrays from which an hstore is made.
const (
	wrongSubscripts = pgerror.Code("2202E")
	nullKey         = pgerror.Code("22004")
)

// hstoreSteps is the work for a pair, as Env.Step counts it, and its memory in bytes.
const hstoreSteps = 64

// hstorePairs returns the pairs of a value, for which it reserves memory.
func hstorePairs(env *Env, d types.Datum) ([]types.HstorePair, error) {
	if err := env.Reserve(hstoreSteps + 4*len(d.Bytes())); err != nil {
		return nil, err
	}
	return types.HstorePairs(d), env.Step(len(d.Bytes()))
}

// lookup finds a key among pairs, nil if there is none.
func lookup(pairs []types.HstorePair, key string) *types.HstorePair {
	i, found := slices.BinarySearchFunc(pairs, key, func(p types.HstorePair, key string) int {
		if len(p.Key) != len(key) {
			return len(p.Key) - len(key)
		}
		return strings.Compare(p.Key, key)
	})
	if !found {
		return nil
	}
	return &pairs[i]
}

// ofPairs declares a function of the pairs of its first argument and the second one.
func ofPairs(f func(pairs []types.HstorePair, arg types.Datum) types.Datum) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		pairs, err := hstorePairs(env, a[0])
		if err != nil {
			return types.Null, err
		}
		arg := types.Null
		if len(a) > 1 {
			arg = a[1]
		}
		return f(pairs, arg), nil
	}
}

// ofTwo declares a function of the pairs of two values.
func ofTwo(f func(a, b []types.HstorePair) types.Datum) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		x, err := hstorePairs(env, a[0])
		if err != nil {
			return types.Null, err
		}
		y, err := hstorePairs(env, a[1])
		if err != nil {
			return types.Null, err
		}
		return f(x, y), nil
	}
}

// ofKeys declares a function of the pairs of its first argument and of the keys in the array that is the second, without NULLs.
func ofKeys(f func(pairs []types.HstorePair, keys []string) types.Datum) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		pairs, err := hstorePairs(env, a[0])
		if err != nil {
			return types.Null, err
		}
		var keys []string
		for _, d := range a[1].Array().Elems {
			if err := env.Step(hstoreSteps); err != nil {
				return types.Null, err
			}
			if !d.IsNull() {
				keys = append(keys, d.Text())
			}
		}
		return f(pairs, keys), nil
	}
}

func hstoreFetch(pairs []types.HstorePair, key types.Datum) types.Datum {
	if p := lookup(pairs, key.Text()); p != nil {
		return p.Datum()
	}
	return types.Null
}

func hstoreExists(pairs []types.HstorePair, key types.Datum) types.Datum {
	return types.Bool(lookup(pairs, key.Text()) != nil)
}

func hstoreDefined(pairs []types.HstorePair, key types.Datum) types.Datum {
	p := lookup(pairs, key.Text())
	return types.Bool(p != nil && !p.Null)
}

func hstoreAll(pairs []types.HstorePair, keys []string) types.Datum {
	return types.Bool(!slices.ContainsFunc(keys, func(key string) bool { return lookup(pairs, key) == nil }))
}

func hstoreAny(pairs []types.HstorePair, keys []string) types.Datum {
	return types.Bool(slices.ContainsFunc(keys, func(key string) bool { return lookup(pairs, key) != nil }))
}

func hstoreContains(a, b []types.HstorePair) types.Datum {
	for i := range b {
		if p := lookup(a, b[i].Key); p == nil || *p != b[i] {
			return types.Bool(false)
		}
	}
	return types.Bool(true)
}

func hstoreConcat(a, b []types.HstorePair) types.Datum { return types.Hstore(slices.Concat(b, a)) }

func hstoreDeleteKey(pairs []types.HstorePair, key types.Datum) types.Datum {
	return types.Hstore(slices.DeleteFunc(pairs, func(p types.HstorePair) bool { return p.Key == key.Text() }))
}

func hstoreDeleteKeys(pairs []types.HstorePair, keys []string) types.Datum {
	gone := map[string]bool{}
	for _, key := range keys {
		gone[key] = true
	}
	return types.Hstore(slices.DeleteFunc(pairs, func(p types.HstorePair) bool { return gone[p.Key] }))
}

func hstoreDeletePairs(a, b []types.HstorePair) types.Datum {
	return types.Hstore(slices.DeleteFunc(a, func(p types.HstorePair) bool {
		other := lookup(b, p.Key)
		return other != nil && *other == p
	}))
}

func hstoreSlice(pairs []types.HstorePair, keys []string) types.Datum {
	var out []types.HstorePair
	for _, key := range keys {
		if p := lookup(pairs, key); p != nil {
			out = append(out, *p)
		}
	}
	return types.Hstore(out)
}

func textArray(elems []types.Datum) types.Datum {
	return types.NewArray(&types.Array{Elem: types.TText, Elems: elems})
}

// hstoreSliceArray is slice_array: the texts of keys, NULL for those that there are not.
func hstoreSliceArray(env *Env, a []types.Datum) (types.Datum, error) {
	pairs, err := hstorePairs(env, a[0])
	if err != nil {
		return types.Null, err
	}
	keys := a[1].Array()
	elems := make([]types.Datum, len(keys.Elems))
	for i, key := range keys.Elems {
		if err := env.Step(hstoreSteps); err != nil {
			return types.Null, err
		}
		elems[i] = types.Null
		if !key.IsNull() {
			elems[i] = hstoreFetch(pairs, key)
		}
	}
	return keys.WithElems(types.TText, elems), nil
}

func keysOf(pairs []types.HstorePair) []types.Datum {
	out := make([]types.Datum, len(pairs))
	for i := range pairs {
		out[i] = types.Text(pairs[i].Key)
	}
	return out
}

func valuesOf(pairs []types.HstorePair) []types.Datum {
	out := make([]types.Datum, len(pairs))
	for i := range pairs {
		out[i] = pairs[i].Datum()
	}
	return out
}

// hstoreElements are keys and texts in turn.
func hstoreElements(pairs []types.HstorePair) []types.Datum {
	out := make([]types.Datum, 0, 2*len(pairs))
	for i := range pairs {
		out = append(out, types.Text(pairs[i].Key), pairs[i].Datum())
	}
	return out
}

// hstoreMatrix is an array of pairs.
func hstoreMatrix(pairs []types.HstorePair, _ types.Datum) types.Datum {
	if len(pairs) == 0 {
		return textArray(nil)
	}
	return types.NewArray(&types.Array{Elem: types.TText, Elems: hstoreElements(pairs), Dims: []types.Dim{{Len: int32(len(pairs)), Low: 1}, {Len: 2, Low: 1}}})
}

// hstoreOfPair is hstore(key, value).
func hstoreOfPair(_ *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	return types.Hstore([]types.HstorePair{newPair(a[0], a[1])}), nil
}

func newPair(key, value types.Datum) types.HstorePair {
	p := types.HstorePair{Key: key.Text(), Null: value.IsNull()}
	if !p.Null {
		p.Value = value.Text()
	}
	return p
}

// hstoreOfArray makes a value of an array of keys and texts in turn, or of pairs.
func hstoreOfArray(env *Env, a []types.Datum) (types.Datum, error) {
	array := a[0].Array()
	switch dims := array.NDims(); {
	case dims > 2:
		return types.Null, pgerror.New(wrongSubscripts, "wrong number of array subscripts")
	case dims == 2 && array.Dim(1).Len != 2:
		return types.Null, pgerror.New(wrongSubscripts, "array must have two columns")
	case len(array.Elems)%2 != 0:
		return types.Null, pgerror.New(wrongSubscripts, "array must have even number of elements")
	}
	var keys, values []types.Datum
	for i, d := range array.Elems {
		if i%2 == 0 {
			keys = append(keys, d)
		} else {
			values = append(values, d)
		}
	}
	return hstoreOfLists(env, keys, values)
}

// hstoreOfArrays makes a value of an array of keys and one of texts.
func hstoreOfArrays(env *Env, a []types.Datum) (types.Datum, error) {
	if a[0].IsNull() {
		return types.Null, nil
	}
	keys := a[0].Array()
	if a[1].IsNull() {
		return hstoreOfLists(env, keys.Elems, make([]types.Datum, len(keys.Elems)))
	}
	values := a[1].Array()
	for _, array := range []*types.Array{keys, values} {
		if array.NDims() > 1 {
			return types.Null, pgerror.New(wrongSubscripts, "wrong number of array subscripts")
		}
	}
	if !keys.SameDims(values) {
		return types.Null, pgerror.New(wrongSubscripts, "arrays must have same bounds")
	}
	return hstoreOfLists(env, keys.Elems, values.Elems)
}

func hstoreOfLists(env *Env, keys, values []types.Datum) (types.Datum, error) {
	if err := env.Reserve(hstoreSteps * len(keys)); err != nil {
		return types.Null, err
	}
	pairs := make([]types.HstorePair, len(keys))
	for i := range pairs {
		if err := env.Step(hstoreSteps); err != nil {
			return types.Null, err
		}
		if keys[i].IsNull() {
			return types.Null, pgerror.New(nullKey, "null value not allowed for hstore key")
		}
		pairs[i] = newPair(keys[i], values[i])
	}
	return types.Hstore(pairs), nil
}

// hstoreOfRecord makes a value of the fields of a record.
func hstoreOfRecord(env *Env, a []types.Datum) (types.Datum, error) {
	record := a[0].Record()
	var pairs []types.HstorePair
	for i, d := range record.Fields {
		p := types.HstorePair{Null: d.IsNull(), Key: "f" + formatOID(types.OID(i+1))}
		if record.Names != nil {
			p.Key = record.Names[i]
		}
		if !p.Null {
			if err := env.ReserveText(d); err != nil {
				return types.Null, err
			}
			p.Value = env.Format.Text(d, record.Types[i])
		}
		pairs = append(pairs, p)
	}
	return types.Hstore(pairs), nil
}

// populateFromHstore is populate_record: the fields of a record whose names are keys get their texts.
func populateFromHstore(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		t := o.Args[0].Underlying()
		if !t.IsComposite() {
			return types.Null, pgerror.New(pgerror.DatatypeMismatch, "first argument must be a rowtype")
		}
		if a[1].IsNull() {
			return a[0], nil
		}
		pairs, err := hstorePairs(env, a[1])
		if err != nil || len(pairs) == 0 && !a[0].IsNull() {
			return a[0], err
		}
		fields := make(types.Row, len(t.Def.Fields))
		if !a[0].IsNull() {
			copy(fields, a[0].Record().Fields)
		}
		for i := range fields {
			p := lookup(pairs, t.Def.Fields[i].Name)
			switch {
			case p == nil && a[0].IsNull() || p != nil && p.Null:
				fields[i] = types.Null
				err = types.CheckNull(t.Def.Fields[i].Type, &env.Format)
			case p != nil:
				fields[i], err = env.ParseText(t.Def.Fields[i].Type, p.Value)
			}
			if err != nil {
				return types.Null, err
			}
		}
		d := t.Def.Row(fields)
		if o.Args[0].IsDomain() && o.Args[0].Def.Constrained() {
			err = env.CheckDomain(o.Args[0].Def, d)
		}
		return d, err
	}
}

// hstoreJSON returns the JSON text of a value. Loosely, texts that are numbers, t and f are no strings.
func hstoreJSON(to types.Type, loose bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		pairs, err := hstorePairs(env, a[0])
		if err != nil {
			return types.Null, err
		}
		b := []byte{'{'}
		for i := range pairs {
			p := &pairs[i]
			if i > 0 {
				b = append(b, ", "...)
			}
			b = append(jsonb.AppendString(b, p.Key), ": "...)
			switch {
			case p.Null:
				b = append(b, "null"...)
			case loose && p.Value == "t":
				b = append(b, "true"...)
			case loose && p.Value == "f":
				b = append(b, "false"...)
			case loose && isNumberText(p.Value):
				b = append(b, p.Value...)
			default:
				b = jsonb.AppendString(b, p.Value)
			}
		}
		return env.ParseText(to, string(append(b, '}')))
	}
}

// isNumberText reports whether a text is a number as JSON writes it.
func isNumberText(s string) bool {
	digits := func() bool {
		n := len(s)
		s = strings.TrimLeft(s, "0123456789")
		return len(s) < n
	}
	s = strings.TrimPrefix(s, "-")
	if rest, ok := strings.CutPrefix(s, "0"); ok {
		s = rest
	} else if !digits() {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if s = rest; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		if !digits() {
			return false
		}
	}
	return s == ""
}
