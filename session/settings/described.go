package settings

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// described has what pg_settings shows of parameters beside their values, as PostgreSQL has it: name, type, unit, category, least and
// greatest value, values, flags; separated by tabs.
//
//go:embed described.tsv
var described string

// Description is what pg_settings shows of a parameter beside its value.
type Description struct {
	Type, Unit, Category, Min, Max string
	Values, Flags                  []string // nil: none
}

var descriptions = sync.OnceValue(func() map[string]Description {
	all := map[string]Description{}
	for line := range strings.Lines(described) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		d := Description{Type: f[1], Unit: f[2], Category: f[3], Min: f[4], Max: f[5]}
		if f[6] != "" {
			d.Values = strings.Split(f[6], ",")
		}
		if f[7] != "" {
			d.Flags = strings.Split(f[7], ",")
		}
		all[strings.ToLower(f[0])] = d
	}
	return all
})

// Describe returns the description of a parameter, false for one that is not known.
func Describe(name string) (Description, bool) {
	d, ok := descriptions()[strings.ToLower(name)]
	return d, ok
}

// inUnit returns a value as a number of units; a value that is none is returned as it is.
func (d *Description) inUnit(value string) string {
	if d.Unit == "" || value == "" {
		return value
	}
	q := quantity{units: memoryUnits, base: 1, whole: d.Type == "integer"}
	count, name := 1.0, strings.TrimLeft(d.Unit, "0123456789")
	if n, err := strconv.Atoi(d.Unit[:len(d.Unit)-len(name)]); err == nil {
		count = float64(n)
	}
	for _, units := range [][]unit{memoryUnits, delayUnits} {
		for _, u := range units {
			if u.name == name {
				q.units, q.base = units, count*u.size
			}
		}
	}
	n, err := q.parse(value)
	if err != nil {
		return value
	}
	return q.print(n)
}
