package builtin

import (
	"testing"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// Goal: everything that extensions have can be found in the catalogs.
//
// Method: each function and operator has a number (go generate ./sql/pgdata), and each function is found by it.
func TestExtensionNumbers(t *testing.T) {
	for _, signature := range ExtensionSignatures() {
		if _, ok := pgdata.Extension().Find(signature); !ok {
			t.Errorf("%s has no OID", signature)
		}
	}
	for _, e := range Extensions() {
		for _, p := range e.Procs() {
			if ProcByOID(p.OID) != p || p.Extension() != e {
				t.Errorf("%s of %s is not found by its OID %d", p.Signature, e.Name, p.OID)
			}
		}
	}
}

// Goal: a function of an extension is found where it is installed, and by no other name.
//
// Method: one function is resolved with and without the extension among the sources.
func TestExtensionSources(t *testing.T) {
	from := ExtensionNamed("uuid-ossp").Source()
	for _, test := range []struct {
		name  FuncName
		found bool
	}{
		{SystemFunc("uuid_nil"), false},
		{FuncName{Name: "uuid_nil", From: System | from}, true},
		{FuncName{Schema: "s", Name: "uuid_nil", From: from}, true},
		{FuncName{Schema: "s", Name: "lower", From: from}, false},
	} {
		args := []types.Type{}
		if test.name.Name == "lower" {
			args = append(args, types.TText)
		}
		if o, err := test.name.Resolve(args); (err == nil) != test.found {
			t.Errorf("%v: %v, %v", test.name, o, err)
		} else if test.found && o.Use() != (Use{Extension: "uuid-ossp", Kind: "function", Name: "uuid_nil()"}) {
			t.Errorf("%v uses %v", test.name, o.Use())
		}
	}
}
