package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func timetzOps() []decl {
	return []decl{
		{sig: "+(timetz,interval) timetz", fn: timetzAdd(0, 1)}, {sig: "-(timetz,interval) timetz", fn: timetzAdd(0, -1)},
		{sig: "+(interval,timetz) timetz", fn: timetzAdd(1, 1)},
		{sig: "+(date,timetz) timestamptz", fn: fn2(dateTimetz)},
		{sig: "+(timetz,date) timestamptz", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return dateTimetz(b, a) })},
	}
}

func timetzFuncs() []decl {
	now := func(env *Env, a []types.Datum) (types.Datum, error) {
		mod := int32(-1)
		if len(a) > 0 {
			mod = int32(min(max(a[0].Int(), 0), 6))
		}
		t := timetzAt(env, env.TxnTime)
		t.Micros = types.RoundMicros(t.Micros, mod)
		return types.NewTimetz(t), nil
	}
	out := []decl{
		{sig: "current_time() timetz", flags: stable, fn: now}, {sig: "current_time(int4) timetz", flags: stable, fn: now},
		{sig: "timestamptz(date,timetz) timestamptz", fn: fn2(dateTimetz)},
		{sig: "timezone(text,timetz) timetz", flags: stable, fn: timetzZone}, {sig: "timezone(interval,timetz) timetz", fn: timetzOffset},
		{sig: "overlaps(timetz,timetz,timetz,timetz) bool", flags: nonStrict, fn: timetzOverlaps},
	}
	return append(out, comparisonFuncs("timetz_", "timetz", "timetz_cmp")...)
}

func timetzCasts() []typeCast {
	return []typeCast{
		{from: "time", to: "timetz", context: Implicit, volatility: Stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			return types.NewTimetz(types.TimetzOf(a[0].Int(), &env.Format)), nil
		}},
		{from: "timetz", to: "time", context: Assignment, fn: fn1(func(a types.Datum) (types.Datum, error) { return types.Int(a.Timetz().Micros), nil })},
		{from: "timestamptz", to: "timetz", context: Assignment, volatility: Stable, fn: func(env *Env, a []types.Datum) (types.Datum, error) {
			if !types.TimestampFinite(a[0].Int()) {
				return types.Null, nil
			}
			return types.NewTimetz(timetzAt(env, a[0].Int())), nil
		}},
	}
}

// timetzAt returns the session's time of day at a finite timestamptz.
func timetzAt(env *Env, ts int64) types.Timetz {
	local := timestamptzToLocal(env, ts)
	return types.Timetz{Micros: floorMod(local, types.MicrosPerDay), West: int32((ts - local) / types.MicrosPerSecond)}
}

// timetzAdd adds an interval, or subtracts it; at is its place among the arguments, from the end.
func timetzAdd(at int, sign int64) Func {
	return func(_ *Env, a []types.Datum) (types.Datum, error) {
		t, iv := a[at].Timetz(), a[1-at].Interval()
		t.Micros = floorMod(t.Micros+sign*(iv.Micros%types.MicrosPerDay), types.MicrosPerDay)
		return types.NewTimetz(t), nil
	}
}

func dateTimetz(date, t types.Datum) (types.Datum, error) {
	return intDatum(addDateTime(date.Int(), t.Timetz().UTC()))
}

// timetzZone is AT TIME ZONE: with the offset that the zone has at the start of the transaction.
func timetzZone(env *Env, a []types.Datum) (types.Datum, error) {
	zone, err := types.LoadZone(a[0].Text())
	if err != nil {
		return types.Null, err
	}
	west := int32((env.TxnTime - zone.Local(env.TxnTime)) / types.MicrosPerSecond)
	return types.NewTimetz(a[1].Timetz().At(west)), nil
}

func timetzOffset(env *Env, a []types.Datum) (types.Datum, error) {
	iv := a[0].Interval()
	if iv.Months != 0 || iv.Days != 0 {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "interval time zone \"%s\" must not include months or days",
			env.Format.Text(a[0], types.TInterval))
	}
	return types.NewTimetz(a[1].Timetz().At(-int32(iv.Micros / types.MicrosPerSecond))), nil
}

// timetzOverlaps compares the places that the times have in their order.
func timetzOverlaps(_ *Env, a []types.Datum) (types.Datum, error) {
	var places [4]types.Datum
	for i, d := range a {
		if d.IsNull() {
			continue
		}
		n := int64(0)
		for _, other := range a {
			if !other.IsNull() && types.Compare(other, d, types.TTimetz) < 0 {
				n++
			}
		}
		places[i] = types.Int(n)
	}
	return overlaps(places), nil
}

func extractTimetz(_ *Env, name string, d types.Datum) (field, error) {
	unit, t := lookupUnit(name), d.Timetz()
	east := -int64(t.West)
	switch unit {
	case unitEpoch:
		return field{n: t.UTC(), scale: 6}, nil
	case unitZone:
		return field{n: east}, nil
	case unitZoneHour:
		return field{n: east / 3600}, nil
	case unitZoneMinute:
		return field{n: east / 60 % 60}, nil
	}
	if f, ok := clockField(unit, t.Micros); ok {
		return f, nil
	}
	return field{}, errUnit(name, types.TTimetz)
}
