package settings

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// unit is a unit of a parameter's values; size is in bytes or microseconds.
type unit struct {
	name string
	size float64
}

// Units, largest first.
var (
	memoryUnits = []unit{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}, {"B", 1}}
	delayUnits  = []unit{{"d", 86_400e6}, {"h", 3600e6}, {"min", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}}
)

// quantity is the values of a numeric parameter: between low and high, in multiples of base, which is in bytes or microseconds.
type quantity struct {
	low, high float64
	whole     bool // integers only
	units     []unit
	base      float64
}

func integers(low, high float64) quantity { return quantity{low: low, high: high, whole: true} }

func numbers(low, high float64) quantity { return quantity{low: low, high: high} }

// memory is sizes in multiples of base bytes.
func memory(base, low, high float64) quantity {
	return quantity{low: low, high: high, whole: true, units: memoryUnits, base: base}
}

// check brings a value to the largest unit that divides it, as SHOW prints it.
func (q quantity) check(value string) (string, error) {
	n, err := q.number(value)
	if err != nil {
		return "", err
	}
	if n > 0 {
		for _, u := range q.units {
			if m := n * q.base / u.size; m == math.Trunc(m) || u.size == 1 {
				return strconv.FormatFloat(m, 'f', -1, 64) + u.name, nil
			}
		}
	}
	return q.print(n), nil
}

// integer returns a value in multiples of the base.
func (q quantity) integer(value string) (int64, error) {
	n, err := q.number(value)
	return int64(n), err
}

// number returns a value in multiples of the base, rounded if it is whole, and fails unless it is in range.
func (q quantity) number(value string) (float64, error) {
	n, err := q.parse(value)
	if err != nil {
		return 0, err
	}
	if q.whole {
		if n = math.RoundToEven(n); math.IsNaN(n) || n > math.MaxInt32 && q.high <= math.MaxInt32 || n < math.MinInt32 {
			return 0, errTooLarge
		}
	}
	if math.IsNaN(n) || n < q.low || n > q.high {
		return 0, &outOfRange{q.print(n) + q.baseName(), q.print(q.low), q.print(q.high)}
	}
	return n, nil
}

// baseName returns the unit of the base after a space, "" if there is none.
func (q quantity) baseName() string {
	for _, u := range q.units {
		if times := q.base / u.size; times >= 1 {
			if times == 1 {
				return " " + u.name
			}
			return " " + strconv.FormatFloat(times, 'f', -1, 64) + u.name
		}
	}
	return ""
}

func (q quantity) print(n float64) string {
	if q.whole {
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 6, 64)
}

// parse reads a number with an optional unit, in multiples of the base.
func (q quantity) parse(value string) (float64, error) {
	v, factor := strings.TrimSpace(value), 1.0
	if end := strings.LastIndexAny(v, "0123456789."); end >= 0 && q.units != nil {
		if name := strings.TrimSpace(v[end+1:]); name != "" {
			i := 0
			for i < len(q.units) && q.units[i].name != name {
				i++
			}
			if i == len(q.units) {
				return 0, fmt.Errorf("valid units for this parameter are %s", q.unitNames())
			}
			v, factor = strings.TrimSpace(v[:end+1]), q.units[i].size/q.base
		}
	}
	if n, err := strconv.ParseInt(v, 0, 64); err == nil {
		return float64(n) * factor, nil
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0, errNoNumber
	}
	return n * factor, nil
}

func (q quantity) unitNames() string {
	var names []string
	for i := len(q.units) - 1; i >= 0; i-- {
		names = append(names, strconv.Quote(q.units[i].name))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + ", and " + names[last]
}
