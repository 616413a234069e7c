package rowenc

import (
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/sql/types/jsonb"
)

// A jsonb is a tag, in the order of the kinds, and: a string as strings are; a number as numerics are; an array as the number
// of its elements and the elements; an object as the number of its members and each one's key, a string, and value.
const (
	tagJSONBase   = 0x10 // an empty array that is the whole value
	tagJSONNull   = tagJSONBase + 1 + byte(jsonb.Null)
	tagJSONString = tagJSONBase + 1 + byte(jsonb.String)
	tagJSONNumber = tagJSONBase + 1 + byte(jsonb.Number)
	tagJSONFalse  = tagJSONBase + 1 + byte(jsonb.False)
	tagJSONTrue   = tagJSONBase + 1 + byte(jsonb.True)
	tagJSONArray  = tagJSONBase + 1 + byte(jsonb.Array)
	tagJSONObject = tagJSONBase + 1 + byte(jsonb.Object)
)

// appendOrderedJSONB appends v; top is set if it is the whole value.
func appendOrderedJSONB(dst []byte, v jsonb.Value, top bool) ([]byte, error) {
	kind := v.Kind()
	if top && kind == jsonb.Array && v.Len() == 0 {
		return append(dst, tagJSONBase), nil
	}
	dst = append(dst, tagJSONBase+1+byte(kind))
	switch kind {
	case jsonb.String:
		return appendOrderedBytes(append(dst, tagBytes), v.Text()), nil
	case jsonb.Number:
		d, err := types.ParseText(types.TNumeric, string(v.Text()), nil)
		if err != nil {
			return nil, err
		}
		return appendOrderedDecimal(dst, d.Decimal()), nil
	case jsonb.Array, jsonb.Object:
		dst = appendOrderedInt(dst, int64(v.Len()))
	}
	for key, member := range v.Members {
		if kind == jsonb.Object {
			dst = appendOrderedBytes(append(dst, tagBytes), key)
		}
		var err error
		if dst, err = appendOrderedJSONB(dst, member, false); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// lossyJSONB reports whether v contains a number whose scale the key does not hold.
func lossyJSONB(v jsonb.Value) bool {
	if v.Kind() == jsonb.Number {
		d, err := types.ParseText(types.TNumeric, string(v.Text()), nil)
		return err != nil || !canonicalDecimal(d.Decimal())
	}
	for _, member := range v.Members {
		if lossyJSONB(member) {
			return true
		}
	}
	return false
}

// jsonbHead reads a tag, and the number of an array's elements or an object's members.
func jsonbHead(b []byte, mask byte) (tag byte, n int, rest []byte, err error) {
	if len(b) == 0 {
		return 0, 0, nil, corrupt("key ends early")
	}
	tag, rest = b[0]^mask, b[1:]
	if tag < tagJSONBase || tag > tagJSONObject {
		return 0, 0, nil, corrupt("bad jsonb in key")
	}
	if tag == tagJSONArray || tag == tagJSONObject {
		var count int64
		if count, rest, err = decodeOrderedInt(rest, mask); err != nil {
			return 0, 0, nil, err
		}
		if count < 0 || count > int64(len(rest)) {
			return 0, 0, nil, corrupt("bad number of members of a jsonb in key")
		}
		n = int(count)
	}
	return tag, n, rest, nil
}

func skipOrderedJSONB(b []byte, mask byte) ([]byte, error) { return skipJSONB(b, mask, 0) }

func skipJSONB(b []byte, mask byte, depth int) ([]byte, error) {
	tag, n, b, err := jsonbHead(b, mask)
	switch {
	case err != nil:
		return nil, err
	case depth > jsonb.MaxDepth:
		return nil, corrupt("a jsonb in key is too deep")
	case tag == tagJSONString:
		return skipJSONBString(b, mask)
	case tag == tagJSONNumber && len(b) > 0:
		return skipOrderedDecimal(b, mask)
	case tag == tagJSONNumber:
		return nil, corrupt("key ends early")
	}
	for range n {
		if tag == tagJSONObject {
			if b, err = skipJSONBString(b, mask); err != nil {
				return nil, err
			}
		}
		if b, err = skipJSONB(b, mask, depth+1); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func skipJSONBString(b []byte, mask byte) ([]byte, error) {
	if len(b) == 0 || b[0]^mask != tagBytes {
		return nil, corrupt("bad string of a jsonb in key")
	}
	return skipOrdered(b, classBytes, mask != 0)
}

func decodeOrderedJSONB(b []byte, mask byte) (types.Datum, []byte, error) {
	var build jsonb.Builder
	rest, err := decodeJSONB(&build, b, mask, 0)
	if err != nil {
		return types.Null, nil, err
	}
	return types.JSONB(build.Finish()), rest, nil
}

// decodeJSONB adds the value that b begins with to build.
func decodeJSONB(build *jsonb.Builder, b []byte, mask byte, depth int) ([]byte, error) {
	tag, n, b, err := jsonbHead(b, mask)
	if err != nil {
		return nil, err
	}
	if depth > jsonb.MaxDepth {
		return nil, corrupt("a jsonb in key is too deep")
	}
	switch tag {
	case tagJSONNull:
		build.Value(jsonb.NullValue)
	case tagJSONFalse, tagJSONTrue:
		build.Value(jsonb.BoolValue(tag == tagJSONTrue))
	case tagJSONString:
		var s string
		if s, b, err = decodeJSONBString(b, mask); err != nil {
			return nil, err
		}
		return b, build.String(s)
	case tagJSONNumber:
		if len(b) == 0 {
			return nil, corrupt("key ends early")
		}
		d, rest, err := decodeOrderedDecimal(b, mask)
		if err != nil {
			return nil, err
		}
		build.Number(string(types.AppendNumeric(nil, d.Decimal())))
		return rest, nil
	default:
		return decodeJSONBMembers(build, b, mask, n, tag == tagJSONObject, depth)
	}
	return b, nil
}

func decodeJSONBMembers(build *jsonb.Builder, b []byte, mask byte, n int, object bool, depth int) ([]byte, error) {
	if object {
		build.BeginObject()
	} else {
		build.BeginArray()
	}
	for range n {
		var key string
		var err error
		if object {
			if key, b, err = decodeJSONBString(b, mask); err != nil {
				return nil, err
			}
			if err := build.Key(key); err != nil {
				return nil, err
			}
		}
		if b, err = decodeJSONB(build, b, mask, depth+1); err != nil {
			return nil, err
		}
	}
	return b, build.End()
}

func decodeJSONBString(b []byte, mask byte) (string, []byte, error) {
	if len(b) == 0 {
		return "", nil, corrupt("key ends early")
	}
	d, rest, err := decodeOrderedBytes(b, mask)
	return d.Text(), rest, err
}
