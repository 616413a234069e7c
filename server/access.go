package server

import (
	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/catalog"
)

// accessRules returns the lines of pg_hba_file_rules.
func accessRules(gate *auth.Gate) ([]catalog.AccessRule, error) {
	rules, err := gate.FileRules()
	if err != nil {
		return nil, err
	}
	all := make([]catalog.AccessRule, len(rules))
	for i, r := range rules {
		all[i] = catalog.AccessRule(r)
	}
	return all, nil
}
