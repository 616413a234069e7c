package builtin

import (
	"testing"

	"github.com/percodb/percodb/sql/types"
)

// Goal: generate_series, date_add and date_subtract with a zone step by that zone's calendar, not by the session's.
// Method: the days around a change of offset.
func TestCalendarOfNamedZone(t *testing.T) {
	env := &Env{}
	at := func(s string) types.Datum {
		d, err := types.ParseText(types.TTimestamptz, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	day, zone := types.NewInterval(types.Interval{Days: 1}), types.Text("Europe/Warsaw")
	rows, err := openZoneSeries(env, []types.Datum{at("2021-10-30 22:00+00"), at("2021-11-01 23:00+00"), day, zone})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2021-10-30 22:00+00", "2021-10-31 23:00+00", "2021-11-01 23:00+00"} {
		d, ok, err := rows.Next(env)
		if err != nil || !ok || d.Int() != at(want).Int() {
			t.Errorf("got %v %v %v, want %s", d, ok, err, want)
		}
	}
	if _, ok, _ := rows.Next(env); ok {
		t.Error("a row too many")
	}
	for sign, want := range map[int64]string{1: "2021-10-31 23:00+00", -1: "2021-10-29 22:00+00"} {
		d, err := addInZone(sign)(env, []types.Datum{at("2021-10-30 22:00+00"), day, zone})
		if err != nil || d.Int() != at(want).Int() {
			t.Errorf("sign %d: got %v %v, want %s", sign, d, err, want)
		}
	}
}
