package fuzzsql

import (
	"fmt"
	"time"

	"github.com/percodb/percodb/sql/types"
)

// style is the settings that values' texts depend on.
type style struct {
	sets   []string // statements
	format types.Format
}

// settings are drawn for each world: a name, the values with what they do to the format. The first is
// the default, and the most frequent.
var settings = []struct {
	name   string
	values []setting
}{
	{"TimeZone", []setting{
		{"UTC", func(f *types.Format) {}}, zone("America/New_York"), zone("Europe/Berlin"), zone("Asia/Kolkata"), zone("Australia/Lord_Howe"),
	}},
	{"IntervalStyle", []setting{
		{"postgres", func(f *types.Format) {}},
		{"postgres_verbose", func(f *types.Format) { f.Interval = types.IntervalPostgresVerbose }},
		{"sql_standard", func(f *types.Format) { f.Interval = types.IntervalSQLStandard }},
		{"iso_8601", func(f *types.Format) { f.Interval = types.IntervalISO8601 }},
	}},
	{"DateStyle", []setting{
		{"ISO, MDY", func(f *types.Format) {}},
		{"SQL, DMY", func(f *types.Format) { f.DateStyle, f.DateOrder = types.DateSQL, types.OrderDMY }},
		{"German, DMY", func(f *types.Format) { f.DateStyle, f.DateOrder = types.DateGerman, types.OrderDMY }},
		{"Postgres, MDY", func(f *types.Format) { f.DateStyle = types.DatePostgres }},
	}},
	{"bytea_output", []setting{
		{"hex", func(f *types.Format) {}},
		{"escape", func(f *types.Format) { f.ByteaText = true }},
	}},
	{"extra_float_digits", []setting{
		{"1", func(f *types.Format) {}},
		{"0", func(f *types.Format) { f.SetExtraFloatDigits(0) }},
		{"-3", func(f *types.Format) { f.SetExtraFloatDigits(-3) }},
	}},
}

type setting struct {
	value string
	apply func(f *types.Format)
}

func zone(name string) setting {
	return setting{name, func(f *types.Format) {
		loc, ok := types.LoadLocation(name)
		if !ok {
			panic("BUG: no zone " + name)
		}
		f.Location = loc
	}}
}

// style draws settings.
func (g *gen) style() style {
	s := style{format: types.Format{Location: time.UTC}}
	for _, d := range settings {
		chosen := d.values[0]
		if g.chance(30) {
			chosen = pick(g, d.values)
		}
		chosen.apply(&s.format)
		s.sets = append(s.sets, fmt.Sprintf("SET %s = '%s'", d.name, chosen.value))
	}
	return s
}
