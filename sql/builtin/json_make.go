package builtin

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// jsonMaker converts SQL values to JSON.
type jsonMaker struct{ env *Env }

// fieldName returns the name of a record's field.
func fieldName(r *types.Record, i int) string {
	if r.Names != nil {
		return r.Names[i]
	}
	return "f" + strconv.Itoa(i+1)
}

func isContainerType(t types.Type) bool {
	t = t.Underlying()
	return t.IsArray() || t.IsRow()
}

func errKeyType() error {
	return pgerror.New(pgerror.InvalidParameterValue, "key value must be scalar, not array, composite, or json")
}

// reserve counts the text of a datum before it is appended.
func (m jsonMaker) reserve(d types.Datum) error {
	if err := m.env.Step(d.ShallowSize()); err != nil {
		return err
	}
	if !d.Large() {
		return nil
	}
	return m.env.Reserve(min(2*d.Size()+d.TextBytes(), MaxValueBytes))
}

// append appends d as json. sep is what separates the members of the outermost container.
func (m jsonMaker) append(dst []byte, d types.Datum, t types.Type, sep string) ([]byte, error) {
	if d.IsNull() {
		return append(dst, "null"...), nil
	}
	switch {
	case t.OID == types.OIDBool:
		return strconv.AppendBool(dst, d.Bool()), nil
	case t.OID == types.OIDJSON:
		return append(dst, d.Bytes()...), nil
	case t.OID == types.OIDJSONB:
		return jsonb.AppendText(dst, d.JSONB()), nil
	case isJSONNumber(d, t):
		return types.AppendText(dst, d, t, &m.env.Format), nil
	case t.IsArray():
		return m.appendArray(dst, d.Array(), t.Elem(), sep)
	case t.IsRow():
		return m.appendRecord(dst, d.Record(), sep)
	}
	return jsonb.AppendString(dst, m.text(d, t)), nil
}

// isJSONNumber reports whether d is a number that JSON can express.
func isJSONNumber(d types.Datum, t types.Type) bool {
	switch t.OID {
	case types.OIDInt2, types.OIDInt4, types.OIDInt8:
		return true
	case types.OIDFloat4, types.OIDFloat8:
		return !math.IsNaN(d.Float()) && !math.IsInf(d.Float(), 0)
	case types.OIDNumeric:
		return d.Decimal().Form == apd.Finite
	}
	return false
}

func (m jsonMaker) appendArray(dst []byte, a *types.Array, elem types.Type, sep string) ([]byte, error) {
	if len(a.Elems) == 0 {
		return append(dst, "[]"...), nil
	}
	return m.appendSubArrays(dst, a.Elems, a.AllDims(), elem, sep)
}

// appendSubArrays appends the elements of an array of the given dimensions. sep stands between the outermost members only.
func (m jsonMaker) appendSubArrays(dst []byte, elems []types.Datum, dims []types.Dim, elem types.Type, sep string) ([]byte, error) {
	dst = append(dst, '[')
	size := len(elems) / int(dims[0].Len)
	var err error
	for i := 0; i < len(elems); i += size {
		if i > 0 {
			dst = append(dst, sep...)
		}
		if len(dims) > 1 {
			dst, err = m.appendSubArrays(dst, elems[i:i+size], dims[1:], elem, ",")
		} else {
			dst, err = m.append(dst, elems[i], elem, ",")
		}
		if err != nil {
			return nil, err
		}
		if err = m.env.Step(stepCost); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

func (m jsonMaker) appendRecord(dst []byte, r *types.Record, sep string) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for i, d := range r.Fields {
		if i > 0 {
			dst = append(dst, sep...)
		}
		dst = append(jsonb.AppendString(dst, fieldName(r, i)), ':')
		if dst, err = m.append(dst, d, r.Types[i], ","); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// text returns the text of a value that is a string in JSON: times in ISO 8601.
func (m jsonMaker) text(d types.Datum, t types.Type) string {
	switch t.OID {
	case types.OIDDate, types.OIDTimestamp, types.OIDTimestamptz:
	default:
		return m.env.Format.Text(d, t)
	}
	iso := m.env.Format
	iso.DateStyle = types.DateISO
	text := iso.Text(d, t)
	if t.OID == types.OIDDate || !types.TimestampFinite(d.Int()) {
		return text
	}
	text = strings.Replace(text, " ", "T", 1)
	if t.OID == types.OIDTimestamptz {
		text = wholeZone(text)
	}
	return text
}

// wholeZone adds the minutes to an offset that has hours only.
func wholeZone(text string) string {
	text, bc := strings.CutSuffix(text, " BC")
	if i := strings.LastIndexAny(text, "+-"); i >= 0 && !strings.Contains(text[i:], ":") {
		text += ":00"
	}
	if bc {
		text += " BC"
	}
	return text
}

// key returns the text of an object's key.
func (m jsonMaker) key(d types.Datum, t types.Type) (string, error) {
	switch {
	case isContainerType(t), t.OID == types.OIDJSON:
		return "", errKeyType()
	case t.OID == types.OIDJSONB:
		if d.JSONB().IsContainer() {
			return "", errKeyType()
		}
		if d.JSONB().Kind() == jsonb.String {
			return string(d.JSONB().Text()), nil
		}
	case t.OID == types.OIDBool:
		return strconv.FormatBool(d.Bool()), nil
	}
	return m.text(d, t), nil
}

// add adds d to a jsonb.
func (m jsonMaker) add(b *jsonb.Builder, d types.Datum, t types.Type) error {
	if d.IsNull() {
		b.Value(jsonb.NullValue)
		return nil
	}
	switch {
	case t.OID == types.OIDBool:
		b.Value(jsonb.BoolValue(d.Bool()))
		return nil
	case t.OID == types.OIDJSONB:
		b.Value(d.JSONB())
		return nil
	case t.OID == types.OIDJSON:
		return b.Read(newJSONReader(m.env, d.Text()))
	case isJSONNumber(d, t):
		text := string(types.AppendText(nil, d, t, &m.env.Format))
		if t.Category() == types.CategoryNumeric && strings.ContainsAny(text, "eE") {
			return b.Read(newJSONReader(m.env, text))
		}
		b.Number(text)
		return nil
	case t.IsArray():
		return m.addArray(b, d.Array().Elems, d.Array().AllDims(), t.Elem())
	case t.IsRow():
		return m.addRecord(b, d.Record())
	}
	return b.String(m.text(d, t))
}

// addArray adds the elements of an array of the given dimensions, of which an empty one has none.
func (m jsonMaker) addArray(b *jsonb.Builder, elems []types.Datum, dims []types.Dim, elem types.Type) error {
	b.BeginArray()
	size := 1
	if len(dims) > 1 {
		size = len(elems) / int(dims[0].Len)
	}
	for i := 0; i < len(elems); i += size {
		err := m.env.Step(stepCost)
		switch {
		case err != nil:
		case len(dims) > 1:
			err = m.addArray(b, elems[i:i+size], dims[1:], elem)
		default:
			err = m.add(b, elems[i], elem)
		}
		if err != nil {
			return err
		}
	}
	return b.End()
}

func (m jsonMaker) addRecord(b *jsonb.Builder, r *types.Record) error {
	b.BeginObject()
	for i, d := range r.Fields {
		if err := b.Key(fieldName(r, i)); err != nil {
			return err
		}
		if err := m.add(b, d, r.Types[i]); err != nil {
			return err
		}
	}
	return b.End()
}

// toJSON is to_json, array_to_json and row_to_json; with a second argument that is true, members are on lines of their own.
func toJSON(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		m := jsonMaker{env}
		if err := m.reserve(a[0]); err != nil {
			return types.Null, err
		}
		sep := ","
		if len(a) == 2 && a[1].Bool() {
			sep = ",\n "
		}
		b, err := m.append(nil, a[0], o.Args[0], sep)
		return types.Bytes(b), err
	}
}

func toJSONB(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		m := jsonMaker{env}
		if err := m.reserve(a[0]); err != nil {
			return types.Null, err
		}
		return buildJSONB(env, 2*a[0].Size(), func(b *jsonb.Builder) error { return m.add(b, a[0], o.Args[0]) })
	}
}

func errOddArguments(name string) error {
	return pgerror.New(pgerror.InvalidParameterValue, "argument list must have even number of elements").
		WithHint("The arguments of " + name + "() must consist of alternating keys and values.")
}

// jsonBuildArray is json_build_array.
func jsonBuildArray(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		m, b := jsonMaker{env}, []byte{'['}
		for i, d := range a {
			if i > 0 {
				b = append(b, ", "...)
			}
			err := m.reserve(d)
			if err == nil {
				b, err = m.append(b, d, o.Args[i], ",")
			}
			if err != nil {
				return types.Null, err
			}
		}
		return types.Bytes(append(b, ']')), nil
	}
}

// jsonBuildObject is json_build_object, which keeps equal keys.
func jsonBuildObject(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if len(a)%2 != 0 {
			return types.Null, errOddArguments(o.Name)
		}
		m, b := jsonMaker{env}, []byte{'{'}
		for i := 0; i < len(a); i += 2 {
			if i > 0 {
				b = append(b, ", "...)
			}
			if a[i].IsNull() {
				return types.Null, pgerror.New(pgerror.InvalidParameterValue, "argument %d cannot be null", i+1).WithHint("Object keys should be text.")
			}
			key, err := m.key(a[i], o.Args[i])
			if err == nil {
				b = append(jsonb.AppendString(b, key), " : "...)
				err = m.reserve(a[i+1])
			}
			if err == nil {
				b, err = m.append(b, a[i+1], o.Args[i+1], ",")
			}
			if err != nil {
				return types.Null, err
			}
		}
		return types.Bytes(append(b, '}')), nil
	}
}

func jsonbBuildArray(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		m := jsonMaker{env}
		return buildJSONB(env, types.Row(a).Size(), func(b *jsonb.Builder) error {
			b.BeginArray()
			for i, d := range a {
				if err := m.add(b, d, o.Args[i]); err != nil {
					return err
				}
			}
			return b.End()
		})
	}
}

func jsonbBuildObject(o *Overload) Func {
	return func(env *Env, a []types.Datum) (types.Datum, error) {
		if len(a)%2 != 0 {
			return types.Null, errOddArguments(o.Name)
		}
		m := jsonMaker{env}
		return buildJSONB(env, types.Row(a).Size(), func(b *jsonb.Builder) error {
			b.BeginObject()
			for i := 0; i < len(a); i += 2 {
				if a[i].IsNull() {
					return pgerror.New(pgerror.InvalidParameterValue, "argument %d: key must not be null", i+1)
				}
				if err := m.addMember(b, a[i], a[i+1], o.Args[i], o.Args[i+1]); err != nil {
					return err
				}
			}
			return b.End()
		})
	}
}

func (m jsonMaker) addMember(b *jsonb.Builder, key, value types.Datum, keyType, valueType types.Type) error {
	text, err := m.key(key, keyType)
	if err == nil {
		err = b.Key(text)
	}
	if err != nil {
		return err
	}
	return m.add(b, value, valueType)
}

// pairsOf returns the keys and values of json_object's arguments: one array of both, or one of each.
func pairsOf(a []types.Datum) (keys, values []types.Datum, err error) {
	both := a[0].Array()
	keys = both.Elems
	if len(a) == 2 {
		if n := both.NDims(); n > 1 || n != a[1].Array().NDims() {
			return nil, nil, errSubscripts()
		}
		if values = a[1].Array().Elems; len(values) != len(keys) {
			return nil, nil, pgerror.New(pgerror.ArraySubscriptError, "mismatched array dimensions")
		}
	} else {
		switch n := both.NDims(); {
		case n == 1 && len(keys)%2 != 0:
			return nil, nil, pgerror.New(pgerror.ArraySubscriptError, "array must have even number of elements")
		case n == 2 && both.Dim(1).Len != 2:
			return nil, nil, pgerror.New(pgerror.ArraySubscriptError, "array must have two columns")
		case n > 2:
			return nil, nil, errSubscripts()
		}
		keys = make([]types.Datum, 0, len(both.Elems)/2)
		for i := 0; i < len(both.Elems); i += 2 {
			keys, values = append(keys, both.Elems[i]), append(values, both.Elems[i+1])
		}
	}
	for _, k := range keys {
		if k.IsNull() {
			return nil, nil, pgerror.New(pgerror.NullValueNotAllowed, "null value not allowed for object key")
		}
	}
	return keys, values, nil
}

func jsonObject(env *Env, a []types.Datum) (types.Datum, error) {
	keys, values, err := pairsOf(a)
	if err != nil {
		return types.Null, err
	}
	m, b := jsonMaker{env}, []byte{'{'}
	for i := range keys {
		if i > 0 {
			b = append(b, ", "...)
		}
		if err = m.reserve(values[i]); err != nil {
			return types.Null, err
		}
		b = append(jsonb.AppendString(b, keys[i].Text()), " : "...)
		if b, err = m.append(b, values[i], types.TText, ","); err != nil {
			return types.Null, err
		}
	}
	return types.Bytes(append(b, '}')), nil
}

func jsonbObject(env *Env, a []types.Datum) (types.Datum, error) {
	keys, values, err := pairsOf(a)
	if err != nil {
		return types.Null, err
	}
	m := jsonMaker{env}
	return buildJSONB(env, types.Row(a).Size()+len(keys)*jsonb.ItemBytes, func(b *jsonb.Builder) error {
		b.BeginObject()
		for i := range keys {
			if err := m.addMember(b, keys[i], values[i], types.TText, types.TText); err != nil {
				return err
			}
		}
		return b.End()
	})
}

// jsonMakeFuncs declares the functions that make json and jsonb from other values.
func jsonMakeFuncs() []decl {
	return []decl{
		{sig: "to_json(anyelement) json", bind: toJSON, flags: stable},
		{sig: "to_jsonb(anyelement) jsonb", bind: toJSONB, flags: stable},
		{sig: "array_to_json(anyarray) json", bind: toJSON, flags: stable},
		{sig: "array_to_json(anyarray,bool) json", bind: toJSON, flags: stable},
		{sig: "row_to_json(record) json", bind: toJSON, flags: stable},
		{sig: "row_to_json(record,bool) json", bind: toJSON, flags: stable},
		{sig: "json_build_array() json", bind: jsonBuildArray, flags: stable | nonStrict},
		{sig: "json_build_array(variadic any) json", bind: jsonBuildArray, flags: stable | nonStrict},
		{sig: "json_build_object() json", bind: jsonBuildObject, flags: stable | nonStrict},
		{sig: "json_build_object(variadic any) json", bind: jsonBuildObject, flags: stable | nonStrict},
		{sig: "jsonb_build_array() jsonb", bind: jsonbBuildArray, flags: stable | nonStrict},
		{sig: "jsonb_build_array(variadic any) jsonb", bind: jsonbBuildArray, flags: stable | nonStrict},
		{sig: "jsonb_build_object() jsonb", bind: jsonbBuildObject, flags: stable | nonStrict},
		{sig: "jsonb_build_object(variadic any) jsonb", bind: jsonbBuildObject, flags: stable | nonStrict},
		{sig: "json_object(text[]) json", fn: jsonObject}, {sig: "json_object(text[],text[]) json", fn: jsonObject},
		{sig: "jsonb_object(text[]) jsonb", fn: jsonbObject}, {sig: "jsonb_object(text[],text[]) jsonb", fn: jsonbObject},
	}
}

// jsonCollected implements json_agg and json_object_agg.
type jsonCollected struct {
	o    *Overload
	some bool
	buf  []byte
}

func (c *jsonCollected) Add(env *Env, a []types.Datum) error {
	m := jsonMaker{env}
	value, t := a[len(a)-1], c.o.Args[len(a)-1]
	if c.some {
		c.buf = append(c.buf, ", "...)
		if len(a) == 1 && !value.IsNull() && isContainerType(t) {
			c.buf = append(c.buf, "\n "...)
		}
	} else if len(a) == 1 {
		c.buf = append(c.buf, '[')
	} else {
		c.buf = append(c.buf, "{ "...)
	}
	c.some = true
	if len(a) == 2 {
		if a[0].IsNull() {
			return errNullField()
		}
		key, err := m.key(a[0], c.o.Args[0])
		if err != nil {
			return err
		}
		c.buf = append(jsonb.AppendString(c.buf, key), " : "...)
	}
	var err error
	c.buf, err = m.append(c.buf, value, t, ",")
	return err
}

func errNullField() error {
	return pgerror.New(pgerror.InvalidParameterValue, "field name must not be null")
}

func (c *jsonCollected) Result(*Env) (types.Datum, error) {
	if !c.some {
		return types.Null, nil
	}
	end := "]"
	if len(c.o.Args) == 2 {
		end = " }"
	}
	return types.Bytes(append(bytes.Clone(c.buf), end...)), nil
}

// jsonbCollected implements jsonb_agg and jsonb_object_agg.
type jsonbCollected struct {
	o      *Overload
	values []jsonb.Value
	keys   []string
}

func (c *jsonbCollected) Add(env *Env, a []types.Datum) error {
	m := jsonMaker{env}
	if len(a) == 2 {
		if a[0].IsNull() {
			return errNullField()
		}
		key, err := m.key(a[0], c.o.Args[0])
		if err != nil {
			return err
		}
		c.keys = append(c.keys, strings.Clone(key))
	}
	var b jsonb.Builder
	if err := m.add(&b, a[len(a)-1], c.o.Args[len(a)-1]); err != nil {
		return err
	}
	c.values = append(c.values, b.Finish())
	return nil
}

func (c *jsonbCollected) Result(env *Env) (types.Datum, error) {
	if c.values == nil {
		return types.Null, nil
	}
	size := len(c.values) * jsonb.ItemBytes
	for _, v := range c.values {
		size += len(v)
	}
	return buildJSONB(env, size, func(b *jsonb.Builder) error {
		if c.keys == nil {
			b.BeginArray()
		} else {
			b.BeginObject()
		}
		for i, v := range c.values {
			if c.keys != nil {
				if err := b.Key(c.keys[i]); err != nil {
					return err
				}
			}
			b.Value(v)
		}
		return b.End()
	})
}

func jsonAggs() []aggDecl {
	text := func(o *Overload) func() Accumulator { return func() Accumulator { return &jsonCollected{o: o} } }
	binary := func(o *Overload) func() Accumulator { return func() Accumulator { return &jsonbCollected{o: o} } }
	return []aggDecl{
		{sig: "json_agg(anyelement) json", make: text, flags: aggOrdered | aggKeepsNulls},
		{sig: "json_object_agg(any,any) json", make: text, flags: aggOrdered | aggKeepsNulls},
		{sig: "jsonb_agg(anyelement) jsonb", make: binary, flags: aggOrdered | aggKeepsNulls},
		{sig: "jsonb_object_agg(any,any) jsonb", make: binary, flags: aggOrdered | aggKeepsNulls},
	}
}
