package session

import (
	"strings"
	"testing"
)

// Goal: the privilege CREATE on the database suffices to install an extension, which then belongs to the role.
//
// Method: a role without it is refused; with it, it installs, uses and drops the extension.
func TestExtensionIsTrusted(t *testing.T) {
	c := newTestServer(t).connect()
	refused := func(text string) {
		t.Helper()
		if got := c.query(text); !strings.Contains(got, "42501") {
			t.Errorf("%s: %s", text, got)
		}
	}
	c.must("create role a", "create schema s authorization a", "set role a")
	refused(`create extension "uuid-ossp" schema s`)
	c.must("reset role", "grant create on database percodb to a", "set role a", `create extension "uuid-ossp" schema s`, "select s.uuid_nil()",
		`alter extension "uuid-ossp" set schema s`)
	refused(`alter extension "uuid-ossp" set schema public`)
	c.must(`drop extension "uuid-ossp"`)
}
