package types

import "github.com/percodb/percodb/sql/types/tsearch"

// The types of full-text search.
const (
	OIDTSVector OID = 3614
	OIDTSQuery  OID = 3615
)

// A datum of these types is what package tsearch encodes.

func init() {
	register(&Methods{
		Info: Info{OIDTSVector, "tsvector", "tsvector", 3643, 0, -1, CategoryUser, false, KindBytes},
		Parse: func(s string, _ int32, _ *Format) (Datum, error) {
			v, err := tsearch.ParseVector(s)
			return vectorOrError(v, err)
		},
		Append: func(dst []byte, d Datum, _ *Format) []byte { return d.TSVector().AppendText(dst) },
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			v, err := tsearch.ReceiveVector(b)
			return vectorOrError(v, err)
		},
		Send: func(dst []byte, d Datum) []byte { return d.TSVector().Send(dst) },
	})
	register(&Methods{
		Info: Info{OIDTSQuery, "tsquery", "tsquery", 3645, 0, -1, CategoryUser, false, KindBytes},
		Parse: func(s string, _ int32, _ *Format) (Datum, error) {
			q, err := tsearch.ParseQuery(s)
			return queryOrError(q, err)
		},
		Append: func(dst []byte, d Datum, _ *Format) []byte { return d.TSQuery().AppendText(dst) },
		Receive: func(b []byte, _ int32, _ *Format) (Datum, error) {
			q, err := tsearch.ReceiveQuery(b)
			return queryOrError(q, err)
		},
		Send: func(dst []byte, d Datum) []byte { return d.TSQuery().Send(dst) },
	})
}

func vectorOrError(v tsearch.Vector, err error) (Datum, error) {
	if err != nil {
		return Null, err
	}
	return TSVector(v), nil
}

func queryOrError(q *tsearch.Query, err error) (Datum, error) {
	if err != nil {
		return Null, err
	}
	return TSQuery(q), nil
}

// TSVector returns a tsvector datum.
func TSVector(v tsearch.Vector) Datum { return Bytes(v.Encode()) }

// TSQuery returns a tsquery datum.
func TSQuery(q *tsearch.Query) Datum { return Bytes(q.Encode()) }

// TSVector returns the value of a tsvector; its words alias the datum.
func (d Datum) TSVector() tsearch.Vector { return tsearch.DecodeVector(d.Bytes()) }

// TSQuery returns the value of a tsquery; its words alias the datum.
func (d Datum) TSQuery() *tsearch.Query { return tsearch.DecodeQuery(d.Bytes()) }
