package settings

import (
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/sql/pgerror"
)

// checkExtraChecks checks a list of PL/pgSQL's extra checks, which is shown as it was set.
func checkExtraChecks(name string) func(value string) (string, error) {
	return func(value string) (string, error) {
		if _, wrong := plpgsql.ParseExtraChecks(value); wrong != "" {
			return "", pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter %q: %q", name, value).WithDetail("%s", wrong)
		}
		return value, nil
	}
}

func applyExtraErrors(s *Settings, value string) error {
	s.Procedural.Errors, _ = plpgsql.ParseExtraChecks(value)
	return nil
}

func applyExtraWarnings(s *Settings, value string) error {
	s.Procedural.Warnings, _ = plpgsql.ParseExtraChecks(value)
	return nil
}

func applyCheckAsserts(s *Settings, value string) error {
	s.Procedural.AssertsOff = value == "off"
	return nil
}

func applyStrictParams(s *Settings, value string) error {
	s.Procedural.StrictParams = value == "on"
	return nil
}

func applyVariableConflict(s *Settings, value string) error {
	s.Procedural.Conflict, _ = plpgsql.ParseConflict(value)
	return nil
}
