package settings

import (
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/sql/pgerror"
)

// checkExtraChecks checks a list of PL/pgSQL's extra checks, which is shown as it was set.
func checkExtraChecks(name string) func(value string) (string, error) {
	return func(value string) (string, error) {
		if _, err := plpgsql.ParseExtraChecks(value); err != nil {
			return "", pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter %q: %q", name, value).WithDetail("%v", err)
		}
		return value, nil
	}
}

func applyExtraErrors(s *Settings, value string) (err error) {
	s.Procedural.Errors, err = plpgsql.ParseExtraChecks(value)
	return err
}

func applyExtraWarnings(s *Settings, value string) (err error) {
	s.Procedural.Warnings, err = plpgsql.ParseExtraChecks(value)
	return err
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
