package builtin

import (
	"github.com/cockroachdb/apd/v3"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func pgidOps() []decl {
	var out []decl
	for _, c := range comparisons[:2] {
		test := c.test
		equal := func(_ *Env, a []types.Datum) (types.Datum, error) {
			return types.Bool(test(compareInts(nil, a[0], a[1]))), nil
		}
		out = append(out, decl{sig: c.op + "(xid,xid) bool", fn: equal}, decl{sig: c.op + "(xid,int4) bool", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.Bool(test(compareInts(nil, a, types.Int(int64(uint32(b.Int())))))), nil
		})})
		if c.op == "=" {
			out = append(out, decl{sig: "=(cid,cid) bool", fn: equal})
		}
	}
	return append(out,
		decl{sig: "-(pg_lsn,pg_lsn) numeric", fn: fn2(lsnDiff)},
		decl{sig: "+(pg_lsn,numeric) pg_lsn", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return lsnAdd(a, b, 1) })},
		decl{sig: "+(numeric,pg_lsn) pg_lsn", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return lsnAdd(b, a, 1) })},
		decl{sig: "-(pg_lsn,numeric) pg_lsn", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return lsnAdd(a, b, -1) })},
	)
}

func pgidFuncs() []decl {
	out := []decl{
		{sig: "pg_lsn_mi(pg_lsn,pg_lsn) numeric", fn: fn2(lsnDiff)}, {sig: "pg_wal_lsn_diff(pg_lsn,pg_lsn) numeric", fn: fn2(lsnDiff)},
		{sig: "pg_lsn(numeric) pg_lsn", fn: fn1(func(a types.Datum) (types.Datum, error) { return lsnOf(a.Decimal(), "convert") })},
		{sig: "pg_current_xact_id() xid8", flags: stable, fn: func(env *Env, _ []types.Datum) (types.Datum, error) {
			if env.Session == nil {
				return types.Null, errNoService("the session")
			}
			return types.Uint64(uint64(env.Session.TxnID(true))), nil
		}},
	}
	out = append(out, comparisonFuncs("pg_lsn_", "pg_lsn", "pg_lsn_cmp")...)
	out = append(out, comparisonFuncs("xid8", "xid8", "xid8cmp")...)
	return append(out, comparisonFuncs("tid", "tid", "bttidcmp")...)
}

func pgidCasts() []typeCast {
	return []typeCast{{from: "xid8", to: "xid", context: Explicit, fn: fn1(func(a types.Datum) (types.Datum, error) {
		return types.Int(int64(uint32(a.Uint64()))), nil
	})}}
}

func lsnNumeric(a types.Datum) *apd.Decimal {
	d := new(apd.Decimal)
	d.Coeff.SetUint64(a.Uint64())
	return d
}

func lsnDiff(a, b types.Datum) (types.Datum, error) {
	return numericDatum(SubNumeric(lsnNumeric(a), lsnNumeric(b)))
}

// lsnOf rounds a numeric to a pg_lsn; what is the operation that the error names.
func lsnOf(d *apd.Decimal, what string) (types.Datum, error) {
	if d.Form == apd.NaN {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "cannot %s NaN to pg_lsn", what)
	}
	if d.Form != apd.Finite {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "cannot %s infinity to pg_lsn", what)
	}
	rounded := types.RoundNumeric(d, 0)
	if rounded.Negative && !rounded.IsZero() || !rounded.Coeff.IsUint64() {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "pg_lsn out of range")
	}
	return types.Uint64(rounded.Coeff.Uint64()), nil
}

func lsnAdd(a, n types.Datum, sign int) (types.Datum, error) {
	by := n.Decimal()
	if by.Form == apd.NaN {
		if sign < 0 {
			return types.Null, pgerror.New(pgerror.FeatureNotSupported, "cannot subtract NaN from pg_lsn")
		}
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "cannot add NaN to pg_lsn")
	}
	add := AddNumeric
	if sign < 0 {
		add = SubNumeric
	}
	sum, err := add(lsnNumeric(a), by)
	if err != nil {
		return types.Null, err
	}
	return lsnOf(sum, "convert")
}
