package types

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// The types of full-text search.
const (
	OIDTSVector OID = 3614
	OIDTSQuery  OID = 3615

	OIDRegconfig     OID = 3734
	OIDRegdictionary OID = 3769
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
		Parse: func(s string, _ int32, f *Format) (Datum, error) {
			q, err := tsearch.ParseQuery(s)
			if err == nil && q.Root == nil && f != nil && f.Warn != nil {
				f.Warn(tsearch.NoLexemes(s))
			}
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

func init() {
	registerTextSearchObject(OIDRegconfig, 3735, "regconfig", "configuration", func(name string) (uint32, bool) {
		c := textsearch.ConfigurationNamed(name)
		if c == nil {
			return 0, false
		}
		return c.OID, true
	}, func(oid uint32) (string, bool) {
		c := textsearch.ConfigurationByOID(oid)
		if c == nil {
			return "", false
		}
		return c.Name, true
	})
	registerTextSearchObject(OIDRegdictionary, 3770, "regdictionary", "dictionary", func(name string) (uint32, bool) {
		d := textsearch.DictionaryNamed(name)
		if d == nil {
			return 0, false
		}
		return d.OID, true
	}, func(oid uint32) (string, bool) {
		d := textsearch.DictionaryByOID(oid)
		if d == nil {
			return "", false
		}
		return d.Name, true
	})
}

// registerTextSearchObject registers the type of the names of configurations or dictionaries. A datum is an OID.
func registerTextSearchObject(oid, array OID, name, what string, oidOf func(string) (uint32, bool), nameOf func(uint32) (string, bool)) {
	registerObjectName(Info{oid, name, name, array, 0, 4, CategoryNumeric, false, KindInt}, func(s string, f *Format) (OID, error) {
		if f != nil && f.Names != nil {
			return f.Names.TextSearchOID(oid, s)
		}
		if n, ok := oidOf(strings.TrimPrefix(s, "pg_catalog.")); ok {
			return OID(n), nil
		}
		return 0, pgerror.New(pgerror.UndefinedObject, "text search %s \"%s\" does not exist", what, s)
	}, func(id OID, f *Format) (string, bool) {
		if f != nil && f.Names != nil {
			return f.Names.TextSearchName(oid, id)
		}
		return nameOf(uint32(id))
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
