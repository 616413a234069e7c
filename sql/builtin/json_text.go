package builtin

import (
	"cmp"

	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// jsonMember is a member of an array or object in a json text.
type jsonMember struct {
	first jsonb.Event
	key   string // in objects
	text  string // the value as written
	str   string // of a string, without quotes and escapes
}

// datum returns the member as json, or as text: strings without quotes, NULL for null.
func (m *jsonMember) datum(text bool) types.Datum {
	switch {
	case text && m.first == jsonb.NullEvent:
		return types.Null
	case text && m.first == jsonb.StringEvent:
		return types.Text(m.str)
	}
	return types.Text(m.text)
}

// newJSONReader returns a reader of a json datum's text.
func newJSONReader(env *Env, text string) *jsonb.Reader {
	return jsonb.NewReader(text, true, func() error { return env.Step(stepsPerCheck / 4) })
}

// readValue reads the value whose first event is first.
func readValue(r *jsonb.Reader, text string, first jsonb.Event) (jsonMember, error) {
	m := jsonMember{first: first}
	start := r.Start()
	if first == jsonb.StringEvent {
		m.str = r.Text()
	}
	end, err := r.Skip(first)
	m.text = text[start:end]
	return m, err
}

// eachMember calls f with the members of the array or object that r has just begun, and reads its end.
func eachMember(r *jsonb.Reader, text string, f func(i int, m *jsonMember) error) error {
	for i := 0; ; i++ {
		found := false
		var ended error
		err := nextMember(r, text, func(m *jsonMember) {
			if found = true; f != nil {
				ended = f(i, m)
			}
		})
		if err != nil || ended != nil || !found {
			return cmp.Or(err, ended)
		}
	}
}

// nextMember calls f with the next member of the array or object that r is in; behind the last it only reads the end.
func nextMember(r *jsonb.Reader, text string, f func(m *jsonMember)) error {
	e, err := r.Next()
	if err != nil || e == jsonb.EndArray || e == jsonb.EndObject || e == jsonb.End {
		return err
	}
	key := ""
	if e == jsonb.Key {
		key = r.Text()
		if e, err = r.Next(); err != nil {
			return err
		}
	}
	m, err := readValue(r, text, e)
	if err != nil {
		return err
	}
	m.key = key
	f(&m)
	return nil
}

// readJSON reads a json text up to its end. It calls begin with the first event, and each with the members if the text is an
// array or object.
func readJSON(env *Env, text string, begin func(jsonb.Event) error, each func(i int, m *jsonMember) error) error {
	if err := env.Step(len(text)); err != nil {
		return err
	}
	r := newJSONReader(env, text)
	first, err := r.Next()
	if err == nil && begin != nil {
		err = begin(first)
	}
	if err == nil && (first == jsonb.BeginArray || first == jsonb.BeginObject) {
		err = eachMember(r, text, each)
	}
	if err == nil {
		_, err = r.Next()
	}
	return err
}

// jsonField is json -> text: of several members with the key, the last.
func jsonField(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		key := a[1].Text()
		return findJSON(env, a[0].Text(), text, func(first jsonb.Event, _ int, m *jsonMember) bool {
			return first == jsonb.BeginObject && m.key == key
		})
	}
}

// jsonElement is json -> integer.
func jsonElement(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		n, err := placeFromEnd(env, a[0].Text(), a[1].Int())
		if err != nil {
			return types.Null, err
		}
		return findJSON(env, a[0].Text(), text, func(first jsonb.Event, i int, _ *jsonMember) bool {
			return first == jsonb.BeginArray && int64(i) == n
		})
	}
}

// placeFromEnd returns the place that a negative n counts from the end of an array.
func placeFromEnd(env *Env, text string, n int64) (int64, error) {
	if n >= 0 {
		return n, nil
	}
	err := readJSON(env, text, nil, func(int, *jsonMember) error {
		n++
		return nil
	})
	return n, err
}

// findJSON returns the last member that matches, NULL if there is none.
func findJSON(env *Env, text string, asText bool, match func(first jsonb.Event, i int, m *jsonMember) bool) (types.Datum, error) {
	var container jsonb.Event
	found := types.Null
	err := readJSON(env, text,
		func(first jsonb.Event) error {
			container = first
			return nil
		},
		func(i int, m *jsonMember) error {
			if match(container, i, m) {
				found = m.datum(asText)
			}
			return nil
		})
	if err != nil {
		return types.Null, err
	}
	return found, nil
}

// jsonPathOp is json #> text[].
func jsonPathOp(text bool) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		path := a[1].Array().Elems
		for _, step := range path {
			if step.IsNull() {
				return types.Null, nil
			}
		}
		if len(path) == 0 {
			return wholeJSON(env, a[0].Text(), text)
		}
		d := a[0]
		for i, step := range path {
			last := i == len(path)-1
			index, isIndex := pathIndex(step.Text())
			n, err := index, error(nil)
			if isIndex && index < 0 {
				if n, err = placeFromEnd(env, d.Text(), index); err != nil {
					return types.Null, err
				}
			}
			d, err = findJSON(env, d.Text(), text && last, func(first jsonb.Event, i int, m *jsonMember) bool {
				return first == jsonb.BeginObject && m.key == step.Text() || first == jsonb.BeginArray && isIndex && int64(i) == n
			})
			if err != nil || d.IsNull() {
				return types.Null, err
			}
		}
		return d, nil
	}
}

// wholeJSON returns the value itself, without the blanks around it.
func wholeJSON(env *Env, text string, asText bool) (types.Datum, error) {
	r := newJSONReader(env, text)
	first, err := r.Next()
	if err != nil {
		return types.Null, err
	}
	m, err := readValue(r, text, first)
	return m.datum(asText), err
}
