package builtin

import (
	"errors"
	"strings"
	"unsafe"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/are"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
	"github.com/percodb/percodb/sql/types/jsonpath"
)

// path returns the parsed path of a jsonpath datum.
func (c *patternCache) path(text string) (*jsonpath.Path, error) {
	if p, ok := c.paths[text]; ok {
		return p, nil
	}
	p, err := jsonpath.Parse(text)
	if err != nil {
		return nil, err
	}
	if c.paths == nil || len(c.paths) >= maxCachedPatterns {
		c.paths = map[string]*jsonpath.Path{}
	}
	if len(text) <= maxCachedBytes {
		c.paths[strings.Clone(text)] = p
	}
	return p, nil
}

// pathError is an error that predicates take as unknown, and that a silent evaluation suppresses.
type pathError struct{ error }

func (e pathError) Unwrap() error { return e.error }

func errPath(code pgerror.Code, format string, args ...any) error {
	return pathError{pgerror.New(code, format, args...)}
}

// pathItem is an item of a sequence: a JSON value, or a date or time.
type pathItem struct {
	v    jsonb.Value
	time *pathTime
}

// items collects a sequence; nil: only whether there is an item matters.
type items struct{ list []pathItem }

// truth is the result of a predicate.
type truth uint8

const (
	isFalse truth = iota
	isTrue
	isUnknown
)

func truthOf(b bool) truth {
	if b {
		return isTrue
	}
	return isFalse
}

// pathRun is an evaluation of a path. Functions return whether they have found an item; with out nil they stop at the first.
type pathRun struct {
	env     *Env
	lax     bool
	ignore  bool // structural errors: lax mode, or below **
	useZone bool // dates and times with and without zone may be compared
	root    jsonb.Value
	vars    jsonb.Value
	current pathItem
	size    int // of the innermost array whose subscripts are evaluated
	base    jsonb.Value
	baseID  int64
	nextID  int64
	depth   int
}

// runPath evaluates a path over root; without vars, variables are null. Errors: pathError for those that may be suppressed.
func runPath(env *Env, path *jsonpath.Path, root, vars jsonb.Value, out *items, useZone bool) (bool, error) {
	if vars != nil && vars.Kind() != jsonb.Object {
		return false, pgerror.New(pgerror.InvalidParameterValue, "\"vars\" argument is not an object").
			WithDetail("Jsonpath parameters should be encoded as key-value pairs of \"vars\" object.")
	}
	r := &pathRun{env: env, lax: !path.Strict, ignore: !path.Strict, useZone: useZone, root: root, vars: vars, base: root, nextID: 1}
	r.current = pathItem{v: root}
	if path.Strict && out == nil { // All items are needed to know that there are no errors.
		out = new(items)
	}
	found, err := r.item(path.Root, pathItem{v: root}, out)
	if out != nil {
		found = len(out.list) > 0
	}
	return found, err
}

func (r *pathRun) item(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	return r.unwrapping(n, it, out, r.lax)
}

// next continues behind n with an item.
func (r *pathRun) next(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	if n.Next != nil {
		return r.item(n.Next, it, out)
	}
	if out != nil {
		if err := r.env.reserveElements(len(out.list)); err != nil {
			return false, err
		}
		out.list = append(out.list, it)
	}
	return true, nil
}

// unwrapping evaluates n over an item; unwrap: operators on members and numbers apply to the elements of an array.
func (r *pathRun) unwrapping(n *jsonpath.Node, it pathItem, out *items, unwrap bool) (bool, error) {
	if err := r.env.Step(comparisonSteps); err != nil {
		return false, err
	}
	if r.depth++; r.depth > jsonb.MaxDepth {
		return false, jsonb.ErrTooDeep()
	}
	defer func() { r.depth-- }()
	switch n.Type {
	case jsonpath.Null, jsonpath.True, jsonpath.False, jsonpath.Number, jsonpath.String, jsonpath.Variable:
		if n.Next == nil && out == nil && n.Type != jsonpath.Variable {
			return true, nil
		}
		v, err := r.constant(n)
		if err != nil {
			return false, err
		}
		defer r.setBase(v)()
		return r.next(n, pathItem{v: v}, out)
	case jsonpath.Root:
		defer r.setBaseID(r.root, 0)()
		return r.next(n, pathItem{v: r.root}, out)
	case jsonpath.Current:
		return r.next(n, r.current, out)
	case jsonpath.Last:
		return r.next(n, pathItem{v: numberValue(types.NewNumeric(int64(r.size - 1)))}, out)
	case jsonpath.Add, jsonpath.Sub, jsonpath.Mul, jsonpath.Div, jsonpath.Mod:
		return r.arithmetic(n, it, out)
	case jsonpath.Plus, jsonpath.Minus:
		return r.sign(n, it, out)
	case jsonpath.Filter:
		if unwrap && it.is(jsonb.Array) {
			return r.elements(n, it.v, out, false)
		}
		t, err := r.nested(n.Left, it)
		if err != nil || t != isTrue {
			return false, err
		}
		return r.next(n, it, out)
	}
	if n.Type >= jsonpath.Or && n.Type <= jsonpath.Exists {
		t, err := r.predicate(n, it)
		if err != nil {
			return false, err
		}
		v := jsonb.NullValue
		if t != isUnknown {
			v = jsonb.BoolValue(t == isTrue)
		}
		return r.next(n, pathItem{v: v}, out)
	}
	return r.accessor(n, it, out, unwrap)
}

func (it pathItem) is(k jsonb.Kind) bool { return it.time == nil && it.v.Kind() == k }

func numberValue(d *apd.Decimal) jsonb.Value { return jsonb.NumberValue(types.AppendNumeric(nil, d)) }

// setBase makes v the value within which keyvalue() numbers objects, until the returned function is called.
func (r *pathRun) setBase(v jsonb.Value) func() {
	id := r.nextID
	r.nextID++
	return r.setBaseID(v, id)
}

func (r *pathRun) setBaseID(v jsonb.Value, id int64) func() {
	base, baseID := r.base, r.baseID
	r.base, r.baseID = v, id
	return func() { r.base, r.baseID = base, baseID }
}

func (r *pathRun) constant(n *jsonpath.Node) (jsonb.Value, error) {
	switch n.Type {
	case jsonpath.True:
		return jsonb.TrueValue, nil
	case jsonpath.False:
		return jsonb.FalseValue, nil
	case jsonpath.Number:
		return jsonb.NumberValue([]byte(n.Text)), nil
	case jsonpath.String:
		return jsonb.StringValue(n.Text)
	case jsonpath.Variable:
		if r.vars == nil {
			return jsonb.NullValue, nil
		}
		v, ok := r.vars.Find(n.Text)
		if !ok {
			return nil, pgerror.New(pgerror.UndefinedObject, "could not find jsonpath variable \"%s\"", n.Text)
		}
		return v, nil
	}
	return jsonb.NullValue, nil
}

// accessor evaluates what selects a part of the item or computes from it.
func (r *pathRun) accessor(n *jsonpath.Node, it pathItem, out *items, unwrap bool) (bool, error) {
	switch n.Type {
	case jsonpath.Key:
		return r.key(n, it, out, unwrap)
	case jsonpath.AnyKey:
		switch {
		case it.is(jsonb.Object):
			return r.any(n.Next, it.v, out, 1, 1, 1, false, r.lax)
		case unwrap && it.is(jsonb.Array):
			return r.elements(n, it.v, out, false)
		case !r.ignore:
			return false, errPath(pgerror.SQLJSONObjectNotFound, "jsonpath wildcard member accessor can only be applied to an object")
		}
		return false, nil
	case jsonpath.AnyArray:
		switch {
		case it.is(jsonb.Array):
			return r.any(n.Next, it.v, out, 1, 1, 1, false, r.lax)
		case r.lax:
			return r.next(n, it, out)
		case !r.ignore:
			return false, errPath(pgerror.SQLJSONArrayNotFound, "jsonpath wildcard array accessor can only be applied to an array")
		}
		return false, nil
	case jsonpath.IndexArray:
		return r.subscripts(n, it, out)
	case jsonpath.Any:
		return r.levels(n, it, out)
	case jsonpath.Datetime:
		if unwrap && it.is(jsonb.Array) {
			return r.elements(n, it.v, out, false)
		}
		t, err := r.datetime(n, it)
		if err != nil {
			return false, err
		}
		return r.next(n, pathItem{time: t}, out)
	}
	return r.method(n, it, out, unwrap)
}

func (r *pathRun) key(n *jsonpath.Node, it pathItem, out *items, unwrap bool) (bool, error) {
	switch {
	case it.is(jsonb.Object):
		if v, ok := it.v.Find(n.Text); ok {
			return r.next(n, pathItem{v: v}, out)
		}
		if !r.ignore {
			return false, errPath(pgerror.SQLJSONMemberNotFound, "JSON object does not contain key \"%s\"", n.Text)
		}
	case unwrap && it.is(jsonb.Array):
		return r.elements(n, it.v, out, false)
	case !r.ignore:
		return false, errPath(pgerror.SQLJSONMemberNotFound, "jsonpath member accessor can only be applied to an object")
	}
	return false, nil
}

// elements evaluates n over the elements of an array.
func (r *pathRun) elements(n *jsonpath.Node, v jsonb.Value, out *items, unwrap bool) (bool, error) {
	return r.any(n, v, out, 1, 1, 1, false, unwrap)
}

// any evaluates n, or nothing, over the members of a container at the levels from first to end.
func (r *pathRun) any(n *jsonpath.Node, v jsonb.Value, out *items, level, first, end uint32, ignore, unwrap bool) (bool, error) {
	if level > end {
		return false, nil
	}
	if r.depth++; r.depth > jsonb.MaxDepth {
		return false, jsonb.ErrTooDeep()
	}
	defer func() { r.depth-- }()
	some := false
	for _, member := range v.Members {
		if err := r.env.Step(comparisonSteps); err != nil {
			return false, err
		}
		if level >= first || first == jsonpath.LastLevel && end == jsonpath.LastLevel && !member.IsContainer() {
			found, err := r.member(n, pathItem{v: member}, out, ignore, unwrap)
			if err != nil || found && out == nil {
				return found, err
			}
			some = some || found
		}
		if level < end && member.IsContainer() {
			found, err := r.any(n, member, out, level+1, first, end, ignore, unwrap)
			if err != nil || found && out == nil {
				return found, err
			}
			some = some || found
		}
	}
	return some, nil
}

func (r *pathRun) member(n *jsonpath.Node, it pathItem, out *items, ignore, unwrap bool) (bool, error) {
	if n == nil {
		return r.next(&jsonpath.Node{}, it, out)
	}
	if ignore {
		saved := r.ignore
		r.ignore = true
		defer func() { r.ignore = saved }()
	}
	return r.unwrapping(n, it, out, unwrap)
}

// levels evaluates .**.
func (r *pathRun) levels(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	some := false
	if n.First == 0 {
		saved := r.ignore
		r.ignore = true
		found, err := r.next(n, it, out)
		r.ignore = saved
		if err != nil || found && out == nil {
			return found, err
		}
		some = found
	}
	if it.time != nil || !it.v.IsContainer() {
		return some, nil
	}
	found, err := r.any(n.Next, it.v, out, 1, n.First, n.End, true, r.lax)
	return some || found, err
}

func (r *pathRun) subscripts(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	array := it.is(jsonb.Array)
	if !array && !r.lax {
		if r.ignore {
			return false, nil
		}
		return false, errPath(pgerror.SQLJSONArrayNotFound, "jsonpath array accessor can only be applied to an array")
	}
	saved := r.size
	defer func() { r.size = saved }()
	size := 1
	if array {
		size = it.v.Len()
	}
	r.size = size
	some := false
	for _, s := range n.Subscripts {
		from, err := r.index(s.From, it)
		if err != nil {
			return false, err
		}
		to := from
		if s.To != nil {
			if to, err = r.index(s.To, it); err != nil {
				return false, err
			}
		}
		if !r.ignore && (from < 0 || from > to || to >= int64(size)) {
			return false, errPath(pgerror.InvalidSQLJSONSubscript, "jsonpath array subscript is out of bounds")
		}
		for i := max(from, 0); i <= min(to, int64(size-1)); i++ {
			e := it
			if array {
				e = pathItem{v: it.v.Elem(int(i))}
			}
			found, err := r.next(n, e, out)
			if err != nil || found && out == nil {
				return found, err
			}
			some = some || found
		}
		r.size = size
	}
	return some, nil
}

// index evaluates a subscript.
func (r *pathRun) index(n *jsonpath.Node, it pathItem) (int64, error) {
	defer r.forget(r.env.Counted())
	var found items
	if _, err := r.item(n, it, &found); err != nil {
		return 0, err
	}
	if len(found.list) != 1 || !found.list[0].is(jsonb.Number) {
		return 0, errPath(pgerror.InvalidSQLJSONSubscript, "jsonpath array subscript is not a single numeric value")
	}
	d, err := jsonbNumber(found.list[0].v)
	if err != nil {
		return 0, err
	}
	i, err := NumericToInt(types.TruncNumeric(d, 0), types.OIDInt4)
	if err != nil {
		return 0, errPath(pgerror.InvalidSQLJSONSubscript, "jsonpath array subscript is out of integer range")
	}
	return i, nil
}

// operand evaluates an operand; in lax mode the elements of arrays take their place.
func (r *pathRun) operand(n *jsonpath.Node, it pathItem, unwrap bool) ([]pathItem, error) {
	var found items
	if _, err := r.item(n, it, &found); err != nil || !unwrap || !r.lax {
		return found.list, err
	}
	var out items
	for _, e := range found.list {
		var err error
		if e.is(jsonb.Array) {
			_, err = r.elements(nil, e.v, &out, false)
		} else if err = r.env.reserveElements(len(out.list)); err == nil {
			out.list = append(out.list, e)
		}
		if err != nil {
			return nil, err
		}
	}
	return out.list, nil
}

// forget releases what was reserved since Counted was before: nothing holds the items of operands any more.
func (r *pathRun) forget(before int64) { r.env.Release(r.env.Counted() - before) }

func (r *pathRun) arithmetic(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	before := r.env.Counted()
	var args [2]*apd.Decimal
	for i, side := range []*jsonpath.Node{n.Left, n.Right} {
		list, err := r.operand(side, it, true)
		if err != nil {
			return false, err
		}
		if len(list) != 1 || !list[0].is(jsonb.Number) {
			return false, errPath(pgerror.SingletonSQLJSONRequired, "%s operand of jsonpath operator %s is not a single numeric value",
				[]string{"left", "right"}[i], n.Type.Operator())
		}
		if args[i], err = jsonbNumber(list[0].v); err != nil {
			return false, err
		}
	}
	op := map[jsonpath.Type]func(a, b *apd.Decimal) (*apd.Decimal, error){
		jsonpath.Add: AddNumeric, jsonpath.Sub: SubNumeric, jsonpath.Mul: MulNumeric, jsonpath.Div: DivNumeric, jsonpath.Mod: ModNumeric,
	}[n.Type]
	r.forget(before)
	d, err := op(args[0], args[1])
	if err != nil {
		return false, pathError{err}
	}
	return r.next(n, pathItem{v: numberValue(d)}, out)
}

func (r *pathRun) sign(n *jsonpath.Node, it pathItem, out *items) (bool, error) {
	list, err := r.operand(n.Left, it, true)
	if err != nil {
		return false, err
	}
	some := false
	for _, e := range list {
		if !e.is(jsonb.Number) {
			if out == nil && n.Next == nil {
				continue
			}
			return false, errPath(pgerror.SQLJSONNumberNotFound, "operand of unary jsonpath operator %s is not a numeric value", n.Type.Operator())
		}
		d, err := jsonbNumber(e.v)
		if err != nil {
			return false, err
		}
		if n.Type == jsonpath.Minus {
			d = NegNumeric(d)
		}
		found, err := r.next(n, pathItem{v: numberValue(d)}, out)
		if err != nil || found && out == nil {
			return found, err
		}
		some = some || found
	}
	return some, nil
}

// nested evaluates a predicate with an item as @.
func (r *pathRun) nested(n *jsonpath.Node, it pathItem) (truth, error) {
	saved := r.current
	r.current = it
	defer func() { r.current = saved }()
	return r.predicate(n, it)
}

// suppress turns an error that predicates take as unknown into false.
func suppress(err error) (unknown bool, hard error) {
	var soft pathError
	if errors.As(err, &soft) {
		return true, nil
	}
	return false, err
}

func (r *pathRun) predicate(n *jsonpath.Node, it pathItem) (truth, error) {
	switch n.Type {
	case jsonpath.And, jsonpath.Or:
		decides := truthOf(n.Type == jsonpath.Or)
		left, err := r.predicate(n.Left, it)
		if err != nil || left == decides {
			return left, err
		}
		right, err := r.predicate(n.Right, it)
		if err != nil || right == decides || left != isUnknown {
			return right, err
		}
		return left, nil
	case jsonpath.Not:
		t, err := r.predicate(n.Left, it)
		if t != isUnknown {
			t = truthOf(t == isFalse)
		}
		return t, err
	case jsonpath.IsUnknown:
		t, err := r.predicate(n.Left, it)
		return truthOf(t == isUnknown), err
	case jsonpath.Exists:
		defer r.forget(r.env.Counted())
		var out *items
		if !r.lax {
			out = new(items)
		}
		found, err := r.item(n.Left, it, out)
		if unknown, hard := suppress(err); unknown || hard != nil {
			return isUnknown, hard
		}
		return truthOf(found), nil
	case jsonpath.StartsWith:
		return r.pairs(n, it, n.Right, false, func(a, b pathItem) (truth, error) {
			if !a.is(jsonb.String) || !b.is(jsonb.String) {
				return isUnknown, nil
			}
			return truthOf(strings.HasPrefix(string(a.v.Text()), string(b.v.Text()))), nil
		})
	case jsonpath.LikeRegex:
		return r.pairs(n, it, nil, false, func(a, _ pathItem) (truth, error) {
			if !a.is(jsonb.String) {
				return isUnknown, nil
			}
			ok, err := matchesPattern(r.env, n, string(a.v.Text()))
			return truthOf(ok), err
		})
	}
	return r.pairs(n, it, n.Right, true, func(a, b pathItem) (truth, error) { return r.compare(n.Type, a, b) })
}

// regexOf compiles the pattern of a like_regex.
func regexOf(env *Env, n *jsonpath.Node) (*Regex, error) {
	flag := func(c string) bool { return strings.Contains(n.Flags, c) }
	var o regexOptions
	for _, option := range []struct {
		on   bool
		flag are.Flags
	}{{flag("i"), are.FoldCase}, {flag("q"), are.Quote}, {!flag("q") && !flag("s"), are.NewlineDot}, {!flag("q") && flag("m"), are.NewlineAnchor}} {
		if option.on {
			o.flags |= option.flag
		}
	}
	return env.patterns.regex(env, n.Text, o)
}

func matchesPattern(env *Env, n *jsonpath.Node, s string) (bool, error) {
	re, err := regexOf(env, n)
	if err != nil {
		return false, err
	}
	return re.matches(env, s)
}

// pairs evaluates a predicate over all pairs of the operands' items: true if it is for one of them. In strict mode an error in
// any makes it unknown.
func (r *pathRun) pairs(n *jsonpath.Node, it pathItem, right *jsonpath.Node, unwrapRight bool, test func(a, b pathItem) (truth, error)) (truth, error) {
	defer r.forget(r.env.Counted())
	as, err := r.operand(n.Left, it, true)
	if unknown, hard := suppress(err); unknown || hard != nil {
		return isUnknown, hard
	}
	bs := []pathItem{{}}
	if right != nil {
		bs, err = r.operand(right, it, unwrapRight)
		if unknown, hard := suppress(err); unknown || hard != nil {
			return isUnknown, hard
		}
	}
	found, failed := false, false
	for _, a := range as {
		for _, b := range bs {
			if err := r.env.Step(comparisonSteps); err != nil {
				return isUnknown, err
			}
			t, err := test(a, b)
			switch {
			case err != nil:
				return isUnknown, err
			case t == isUnknown && !r.lax:
				return isUnknown, nil
			case t == isTrue && r.lax:
				return isTrue, nil
			}
			found, failed = found || t == isTrue, failed || t == isUnknown
		}
	}
	switch {
	case found:
		return isTrue, nil
	case failed:
		return isUnknown, nil
	}
	return isFalse, nil
}

// compare compares two items; those that have no order are unknown.
func (r *pathRun) compare(op jsonpath.Type, a, b pathItem) (truth, error) {
	c := 0
	switch {
	case a.time != nil && b.time != nil:
		var ok bool
		var err error
		if c, ok, err = r.compareTimes(a.time, b.time); err != nil || !ok {
			return isUnknown, err
		}
	case a.is(jsonb.Null) != b.is(jsonb.Null):
		return truthOf(op == jsonpath.NotEqual), nil
	case a.time != nil || b.time != nil, a.v.IsContainer() || b.v.IsContainer(), jsonbTypeName(a.v) != jsonbTypeName(b.v):
		return isUnknown, nil
	default:
		c = jsonb.Compare(a.v, b.v)
	}
	switch op {
	case jsonpath.Equal:
		return truthOf(c == 0), nil
	case jsonpath.NotEqual:
		return truthOf(c != 0), nil
	case jsonpath.Less:
		return truthOf(c < 0), nil
	case jsonpath.LessOrEqual:
		return truthOf(c <= 0), nil
	case jsonpath.Greater:
		return truthOf(c > 0), nil
	}
	return truthOf(c >= 0), nil
}

// place returns the number of an object within the value that a path has come from.
func (r *pathRun) place(v jsonb.Value) int64 {
	offset := int64(uintptr(unsafe.Pointer(unsafe.SliceData(v))) - uintptr(unsafe.Pointer(unsafe.SliceData(r.base))))
	if offset < 0 || offset >= int64(len(r.base)) {
		offset = 0
	}
	const ids = 10_000_000_000
	return offset + r.baseID*ids
}
