package rowenc

import (
	"github.com/percodb/percodb/sql/types"
)

// A field that is NULL is tagNullLast and rowNull. tagNullLast and rowEnd follow the last field that is not NULL: such a record sorts behind
// those with a value in a later field. An attribute that is added to the type changes no key, for it is NULL in all records there are.
const (
	rowNull = 0x00
	rowEnd  = 0xFF
)

// appendOrderedRow appends a record's fields in order, each as a column of a key, escaped as one string.
func appendOrderedRow(dst []byte, d *types.Defined, r *types.Record) ([]byte, error) {
	n := len(r.Fields)
	for n > 0 && r.Fields[n-1].IsNull() {
		n--
	}
	var inner []byte
	var err error
	for i := range n {
		if r.Fields[i].IsNull() {
			inner = append(inner, tagNullLast, rowNull)
			continue
		}
		if inner, err = appendOrdered(inner, d.Fields[i].Type, r.Fields[i], false, false); err != nil {
			return nil, err
		}
	}
	return appendOrderedBytes(append(dst, tagBytes), append(inner, tagNullLast, rowEnd)), nil
}

func decodeOrderedRow(b []byte, mask byte, d *types.Defined) (types.Datum, []byte, error) {
	inner, rest, err := decodeOrderedBytes(b, mask)
	if err != nil {
		return types.Null, nil, err
	}
	fields := make(types.Row, len(d.Fields))
	in := inner.Bytes()
	for i := range fields {
		if len(in) >= 2 && in[0] == tagNullLast {
			if in[1] == rowEnd {
				break
			}
			in = in[2:]
			continue
		}
		t := d.Fields[i].Type
		if fields[i], in, err = decodeOrdered(in, t, classOf(t), false); err != nil {
			return types.Null, nil, err
		}
	}
	if len(in) != 2 {
		return types.Null, nil, corrupt("bytes after a record in key")
	}
	return d.Row(fields), rest, nil
}
