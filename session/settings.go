package session

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// settings are one session's run-time parameters (PostgreSQL's GUCs), by lower-case name. Values
// differing from the default are kept; a transaction that rolls back restores them.
type settings struct {
	defs    map[string]*settingDef
	values  map[string]string
	startup map[string]string // what RESET goes back to, where the client's startup packet set it
	// changed: a value may differ from what the client was told, which is told, by key.
	changed bool
	told    map[string]string

	// What the hot path asks for, kept decoded.
	statementTimeout time.Duration
	format           types.Format
	searchPath       []string
	modes            modes // of transactions to come
	lockTimeout      time.Duration
	mysql            bool // the client's texts are MySQL's
	// idleTimeout is for how long a client may leave a transaction waiting, idleSessionTimeout for how
	// long it may be silent outside one. 0: for ever.
	idleTimeout, idleSessionTimeout time.Duration
}

// settingDef describes one parameter.
type settingDef struct {
	name     string // as SHOW ALL prints it
	initial  string
	reported bool // ParameterStatus
	fixed    bool // 55P02 on SET
	atStart  bool // fixed by a flag of the server
	note     string
	// check returns the value in canonical form, or an error to answer 22023 with.
	check func(value string) (string, error)
	// checkIn is check for values that depend on the one in force.
	checkIn func(s *settings, value string) (string, error)
	// apply puts the value where the hot path reads it.
	apply func(s *settings, value string) error
}

func newSettings(version string) *settings {
	s := &settings{defs: settingDefs(version), values: map[string]string{}, startup: map[string]string{}, changed: true, told: map[string]string{}}
	for _, def := range s.defs {
		if def.apply != nil {
			if err := def.apply(s, def.initial); err != nil {
				panic(fmt.Sprintf("default of setting %s: %v", def.name, err))
			}
		}
	}
	return s
}

// fixedSetting refuses to change a parameter (55P02).
func fixedSetting(def *settingDef) error {
	if def.atStart {
		return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed without restarting the server", def.name)
	}
	return pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed", def.name)
}

// get returns a parameter's value; a name with a dot that nobody set is an unknown custom parameter.
func (s *settings) get(name string) (string, bool) {
	name = strings.ToLower(name)
	if v, ok := s.values[name]; ok {
		return v, true
	}
	if def, ok := s.defs[name]; ok {
		return def.initial, true
	}
	return "", false
}

// set changes a parameter and returns its canonical value. Unknown names with a dot are kept as they
// are, as PostgreSQL does for extensions' parameters.
func (s *settings) set(name, value string) (string, error) {
	key := strings.ToLower(name)
	def, ok := s.defs[key]
	if !ok {
		if strings.Contains(key, ".") {
			s.values[key] = value
			return value, nil
		}
		return "", unknownSetting(name)
	}
	if def.fixed {
		return "", fixedSetting(def)
	}
	canonical, err := value, error(nil)
	switch {
	case def.check != nil:
		canonical, err = def.check(value)
	case def.checkIn != nil:
		canonical, err = def.checkIn(s, value)
	}
	if err != nil {
		return "", settingError(def, value, err)
	}
	if def.apply != nil {
		if err := def.apply(s, canonical); err != nil {
			return "", settingError(def, value, err)
		}
	}
	s.values[key] = canonical
	s.changed = true
	return canonical, nil
}

// reset puts a parameter back to what the session started with.
func (s *settings) reset(name string) error {
	key := strings.ToLower(name)
	def, ok := s.defs[key]
	if !ok {
		if !strings.Contains(key, ".") {
			return unknownSetting(name)
		}
		delete(s.values, key)
		return nil
	}
	value, ok := s.startup[key]
	if !ok {
		value = def.initial
	}
	if def.fixed {
		return nil
	}
	_, err := s.set(name, value)
	return err
}

// snapshot and restore serve transactions that roll back their SETs.
func (s *settings) snapshot() map[string]string {
	return maps.Clone(s.values)
}

// restore goes back to a snapshot.
func (s *settings) restore(to map[string]string) {
	for name, def := range s.defs {
		want, ok := to[name]
		if !ok {
			want = def.initial
		}
		have, _ := s.get(name)
		if have == want {
			continue
		}
		if def.apply != nil {
			// The value was in force before, so it applies again.
			_ = def.apply(s, want)
		}
	}
	s.values = maps.Clone(to)
	s.changed = true
}

// report tells the reported parameters whose values the client does not know, in name order.
func (s *settings) report(tell func(name, value string)) {
	for _, key := range slices.Sorted(maps.Keys(s.defs)) {
		def := s.defs[key]
		if !def.reported {
			continue
		}
		value, _ := s.get(key)
		if told, ok := s.told[key]; ok && told == value {
			continue
		}
		s.told[key] = value
		tell(def.name, value)
	}
	s.changed = false
}

// all lists name, value and description in name order, for SHOW ALL and pg_settings.
func (s *settings) all() [][3]string {
	rows := make([][3]string, 0, len(s.defs))
	for key, def := range s.defs {
		value, _ := s.get(key)
		rows = append(rows, [3]string{def.name, value, def.note})
	}
	sort.Slice(rows, func(i, j int) bool { return strings.ToLower(rows[i][0]) < strings.ToLower(rows[j][0]) })
	return rows
}

func unknownSetting(name string) error {
	return pgerror.New(pgerror.UndefinedObject, "unrecognized configuration parameter %q", name)
}

func settingError(def *settingDef, value string, err error) error {
	if pg, ok := err.(*pgerror.Error); ok {
		return pg
	}
	e := pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter %q: %q", def.name, value)
	reason := err.Error()
	e.Hint = strings.ToUpper(reason[:1]) + reason[1:] + "."
	return e
}

// The checks of values.

func checkBool(value string) (string, error) {
	v := strings.ToLower(strings.TrimSpace(value))
	for _, word := range []string{"true", "yes", "on", "1"} {
		if v != "" && v != "o" && strings.HasPrefix(word, v) {
			return "on", nil
		}
	}
	for _, word := range []string{"false", "no", "off", "0"} {
		if v != "" && v != "o" && strings.HasPrefix(word, v) {
			return "off", nil
		}
	}
	return "", fmt.Errorf("a Boolean value is required")
}

func checkInt(low, high int64) func(string) (string, error) {
	return func(value string) (string, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return "", fmt.Errorf("an integer is required")
		}
		if n < low || n > high {
			return "", fmt.Errorf("valid values are from %d to %d", low, high)
		}
		return strconv.FormatInt(n, 10), nil
	}
}

func checkEnum(words ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		v := strings.ToLower(strings.TrimSpace(value))
		for _, w := range words {
			if v == w {
				return w, nil
			}
		}
		return "", fmt.Errorf("available values: %s", strings.Join(words, ", "))
	}
}

// timeUnits are PostgreSQL's units of time parameters, longest first where one ends another.
var timeUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"us", time.Microsecond}, {"ms", time.Millisecond}, {"min", time.Minute},
	{"s", time.Second}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// parseMillis reads "250", "250ms", "2s", "5min" as PostgreSQL reads parameters in milliseconds.
func parseMillis(value string) (time.Duration, error) {
	v := strings.TrimSpace(value)
	unit := time.Millisecond
	for _, u := range timeUnits {
		if strings.HasSuffix(v, u.suffix) {
			v, unit = strings.TrimSpace(strings.TrimSuffix(v, u.suffix)), u.unit
			break
		}
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0, fmt.Errorf(`valid units for this parameter are "us", "ms", "s", "min", "h", and "d"`)
	}
	d := time.Duration(n * float64(unit))
	if n < 0 || d > (1<<31-1)*time.Millisecond {
		return 0, fmt.Errorf("valid values are from 0 to 2147483647 ms")
	}
	return d, nil
}

// checkPositiveMillis is checkMillis without 0.
func checkPositiveMillis(value string) (string, error) {
	if d, err := parseMillis(value); err == nil && d < time.Millisecond {
		return "", fmt.Errorf("valid values are from 1 to 2147483647 ms")
	}
	return checkMillis(value)
}

// checkMillis brings a duration to the largest unit that divides it, as SHOW prints it.
func checkMillis(value string) (string, error) {
	d, err := parseMillis(value)
	if err != nil {
		return "", err
	}
	return durationText(d), nil
}

// durationText prints a duration in the largest unit that divides it.
func durationText(d time.Duration) string {
	ms := d.Milliseconds()
	switch {
	case ms == 0:
		return "0"
	case ms%86_400_000 == 0:
		return fmt.Sprintf("%dd", ms/86_400_000)
	case ms%3_600_000 == 0:
		return fmt.Sprintf("%dh", ms/3_600_000)
	case ms%60_000 == 0:
		return fmt.Sprintf("%dmin", ms/60_000)
	case ms%1000 == 0:
		return fmt.Sprintf("%ds", ms/1000)
	}
	return fmt.Sprintf("%dms", ms)
}
