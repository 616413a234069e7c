package settings

import (
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
)

// Rules is the setting with the rules that decide which clients are let in, for servers without a file of rules.
const Rules = "percodb.hba"

// The values of settings that are in force from the start of a server to its end, or until it loads them again.
const (
	MaxConnections        = "max_connections"
	ReservedConnections   = "superuser_reserved_connections"
	AuthenticationTimeout = "authentication_timeout"
)

// Where a value of a Server comes from, as pg_settings says it.
const (
	FromFile        = "configuration file" // ALTER SYSTEM
	FromCommandLine = "command line"
	FromServer      = "override"
)

// Server are the values that a server gives to the settings of its sessions, by lower-case name. Immutable.
type Server map[string]ServerValue

// ServerValue is a value in canonical form.
type ServerValue struct {
	Value, Source  string
	PendingRestart bool // another one is stored, and in force from the next start
}

// Follow takes over the values of a server, which change those of the parameters that the session has not set.
func (s *Settings) Follow(server *Server) {
	if server == nil || server == s.base {
		return
	}
	before := s.base
	s.base = server
	for key, def := range shared().defs {
		if _, set := s.values[key]; set || def.apply == nil {
			continue
		}
		if before != nil && (*before)[key].Value == (*server)[key].Value {
			continue
		}
		_ = def.apply(s, s.initial(key, def)) // It has passed its check.
	}
	s.changed = true
	s.notify()
}

// MayExamine has f decide whether the values of parameters are shown that not every role may see.
func (s *Settings) MayExamine(f func() bool) { s.mayExamine = f }

func (s *Settings) shows(def *definition) bool {
	return !def.hidden || s.mayExamine == nil || s.mayExamine()
}

// Join returns the value of a parameter that SET gives by a list: names of a search path are quoted where they must be.
func Join(name string, values []string) string {
	if strings.EqualFold(name, "search_path") {
		quoted := make([]string, len(values))
		for i, v := range values {
			quoted[i] = keyword.QuoteIdent(v)
		}
		values = quoted
	}
	return strings.Join(values, ", ")
}

// Initial returns the value of a parameter that neither the server nor the session gives one.
func Initial(name string) string { return shared().defs[name].initial }

// IsStartOnly reports whether a server takes the value of a parameter over at its start only.
func IsStartOnly(name string) bool {
	def := shared().defs[name]
	return def != nil && def.atStart
}

// FlagOf returns the flag of percodb start that gives the value of a parameter, "" if there is none.
func FlagOf(name string) string { return shared().defs[name].flag }

// CheckSystem returns the canonical form of a value that ALTER SYSTEM gives to a parameter.
func CheckSystem(name, value string) (canonical string, err error) {
	key := strings.ToLower(name)
	def := shared().defs[key]
	if def == nil {
		return "", Unknown(name)
	}
	if err := def.storable(); err != nil {
		return "", err
	}
	canonical = value
	switch {
	case def.check != nil:
		canonical, err = def.check(value)
	case def.checkIn != nil:
		canonical, err = def.checkIn(New(map[string]string{}), value)
	}
	if err == nil && def.apply != nil {
		err = def.apply(New(map[string]string{}), canonical)
	}
	if err != nil {
		return "", def.invalid(value, err)
	}
	if key != Rules && strings.Contains(value, "\n") {
		return "", pgerror.New(pgerror.InvalidParameterValue, "parameter value for ALTER SYSTEM must not contain a newline")
	}
	return canonical, nil
}

// CheckReset returns the error of ALTER SYSTEM RESET of a parameter.
func CheckReset(name string) error {
	def := shared().defs[strings.ToLower(name)]
	if def == nil {
		return Unknown(name)
	}
	return def.storable()
}

// storable returns an error unless ALTER SYSTEM may change the parameter.
func (def *definition) storable() error {
	if !def.role && !def.ofTransaction && (!def.fixed || def.stored) {
		return nil
	}
	e := pgerror.New(pgerror.CantChangeRuntimeParam, "parameter %q cannot be changed", def.name)
	if def.flag != "" {
		e.Hint = "The flag " + def.flag + " of percodb start sets it."
	}
	return e
}

// context is where a parameter's value can be changed, as pg_settings says it.
func (def *definition) context() string {
	switch {
	case def.atStart:
		return "postmaster"
	case def.atReload:
		return "sighup"
	case def.fixed:
		return "internal"
	case def.super:
		return "superuser"
	}
	return "user"
}

// outOfRange is the error of a number that a parameter cannot have. The bounds are without the unit of the value.
type outOfRange struct{ value, low, high string }

func (e *outOfRange) Error() string { return "valid values are from " + e.low + " to " + e.high }

// outside returns the error of an integer; unit begins with a space, or is empty.
func outside(n int64, unit string, low, high int64) error {
	return &outOfRange{strconv.FormatInt(n, 10) + unit, strconv.FormatInt(low, 10), strconv.FormatInt(high, 10)}
}

// checkSecondsIn is checkSeconds for a parameter with other bounds.
func checkSecondsIn(low, high int64) func(string) (string, error) {
	return func(value string) (string, error) {
		d, err := parseSeconds(value)
		if err != nil {
			return "", err
		}
		if n := int64(d / time.Second); n < low || n > high {
			return "", outside(n, " s", low, high)
		}
		return DurationText(d), nil
	}
}

// ParseSeconds returns the duration of a value in canonical form of a parameter in seconds.
func ParseSeconds(value string) (time.Duration, error) { return parseSeconds(value) }
