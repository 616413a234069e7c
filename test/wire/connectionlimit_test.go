package wire_test

import (
	"strings"
	"testing"
)

// Goal: the limits of a role and of the database are those in force at the login: after ALTER and RENAME the new ones, for all sessions of the
// role, under whichever name they began. Superusers are not bound.
func TestConnectionLimitsOfRolesAndDatabase(t *testing.T) {
	s := startSecured(t, "host all all all trust\n")
	execAll(t, s.admin, "create role bound login connection limit 1")
	login := func(user, want string) {
		t.Helper()
		_, err := s.connect("sslmode=disable user=" + user)
		if got := failure(err); want == "" && err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
	login("bound", "")
	login("bound", `53300 too many connections for role "bound"`)
	execAll(t, s.admin, "alter role bound rename to renamed")
	login("renamed", `53300 too many connections for role "renamed"`)
	login("bound", "28000")
	execAll(t, s.admin, "alter role renamed connection limit 2")
	login("renamed", "")
	login("renamed", `53300 too many connections for role "renamed"`)
	execAll(t, s.admin, "alter role renamed connection limit -1", "alter database percodb connection limit 4")
	login("renamed", "") // the fourth, with the superuser's
	login("renamed", `53300 too many connections for database "percodb"`)
	login("x", "")
	var limit int
	s.must(s.admin.QueryRow(testContext(t), "select datconnlimit from pg_database where datname = 'percodb'").Scan(&limit))
	if limit != 4 {
		t.Errorf("datconnlimit is %d", limit)
	}
	execAll(t, s.admin, "alter database percodb with connection limit = -1")
	login("renamed", "")
	for statement, code := range map[string]string{
		"alter database percodb connection limit -2":  "22023",
		"alter database percodb connection limit 'x'": "42601",
		"alter database missing connection limit 1":   "3D000",
	} {
		if _, err := s.admin.Exec(testContext(t), statement); pgError(err).Code != code {
			t.Errorf("%s: %v", statement, err)
		}
	}
	execAll(t, s.admin, "set role renamed")
	if _, err := s.admin.Exec(testContext(t), "alter database percodb connection limit 1"); pgError(err).Code != "42501" {
		t.Errorf("not the owner: %v", err)
	}
}
