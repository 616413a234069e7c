package plpgsql

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
)

// Options are the parameters of a session that concern the language. The zero value has PostgreSQL's defaults.
type Options struct {
	// AssertsOff has ASSERT do nothing.
	AssertsOff bool
	// StrictParams and Conflict hold for functions that do not say otherwise.
	StrictParams bool
	Conflict     Conflict
	// Warnings are the extra checks that warn, Errors those that fail.
	Warnings, Errors ExtraChecks
}

// ExtraChecks are the checks of plpgsql.extra_warnings and plpgsql.extra_errors.
type ExtraChecks uint8

// The extra checks.
const (
	ShadowedVariables ExtraChecks = 1 << iota
	TooManyRows
	StrictMultiAssignment
)

var extraChecks = map[string]ExtraChecks{
	"shadowed_variables": ShadowedVariables, "too_many_rows": TooManyRows, "strict_multi_assignment": StrictMultiAssignment,
}

// ParseExtraChecks reads the value of a parameter that lists extra checks. wrong is the detail of the error for a value that is none.
func ParseExtraChecks(value string) (checks ExtraChecks, wrong string) {
	words := strings.Split(strings.ToLower(value), ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	if len(words) == 1 {
		switch words[0] {
		case "all":
			return ShadowedVariables | TooManyRows | StrictMultiAssignment, ""
		case "none":
			return 0, ""
		}
	}
	for _, w := range words {
		switch check := extraChecks[w]; {
		case w == "all", w == "none":
			return 0, fmt.Sprintf("Key word \"%s\" cannot be combined with other key words.", w)
		case w == "" && len(words) == 1:
		case check == 0:
			return 0, fmt.Sprintf("Unrecognized key word: \"%s\".", w)
		default:
			checks |= check
		}
	}
	return checks, ""
}

// ParseConflict reads the value of plpgsql.variable_conflict.
func ParseConflict(word string) (Conflict, bool) {
	c, ok := map[string]Conflict{"error": conflictError, "use_variable": preferVariable, "use_column": preferColumn}[word]
	return c, ok
}

// extra reports a violation of an extra check: it returns e if that is an error, and shows it if it is a warning.
func (o *Options) extra(check ExtraChecks, e *pgerror.Error, warn func(*pgerror.Error)) error {
	if o.Errors&check != 0 {
		return e
	}
	if o.Warnings&check != 0 {
		c := *e
		c.Severity = "WARNING"
		warn(&c)
	}
	return nil
}

// checks reports whether an extra check is on.
func (o *Options) checks(check ExtraChecks) bool { return (o.Warnings|o.Errors)&check != 0 }

// Validation is the check of a function that is being created; nil: the function is about to be executed.
type Validation struct{ Warnings []*pgerror.Error }

func (v *Validation) warn(e *pgerror.Error) { v.Warnings = append(v.Warnings, e) }
