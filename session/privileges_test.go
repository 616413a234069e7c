package session

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/pgerror"
)

// Goal: a role without SUPERUSER connects and does what it has been granted; one that has lost CONNECT does not connect; grants and
// revocations of others are in force for the next statement, also of plans that are kept. Method: two sessions.
func TestGrantsOfOthers(t *testing.T) {
	s := newTestServer(t)
	root := s.connect()
	for _, text := range []string{
		"CREATE TABLE t(id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 10)", "CREATE ROLE app LOGIN", "CREATE ROLE other LOGIN",
	} {
		if got := root.query(text); strings.Contains(got, "error") {
			t.Fatalf("%s: %s", text, got)
		}
	}
	app, err := s.connectAs(map[string]string{"user": "app", "database": catalog.FirstDatabaseName})
	if err != nil {
		t.Fatal(err)
	}
	const read = "SELECT v FROM t WHERE id = 1"
	for _, step := range []struct{ grant, want string }{
		{"", "error 42501"}, {"GRANT SELECT ON t TO app", "row 10"}, {"REVOKE SELECT ON t FROM app", "error 42501"},
		{"GRANT SELECT (v) ON t TO app", "error 42501"}, {"GRANT SELECT (id) ON t TO app", "row 10"},
		{"ALTER ROLE app SUPERUSER", "row 10"}, {"REVOKE ALL ON t FROM app", "row 10"}, {"ALTER ROLE app NOSUPERUSER", "error 42501"},
		{"GRANT SELECT ON t TO other", "error 42501"}, {"GRANT other TO app", "row 10"}, {"REVOKE USAGE ON SCHEMA public FROM PUBLIC", "error 42P01"},
		{"GRANT USAGE ON SCHEMA public TO other", "row 10"}, {"REVOKE other FROM app", "error 42P01"},
	} {
		if step.grant != "" {
			if got := root.query(step.grant); strings.Contains(got, "error") {
				t.Fatalf("%s: %s", step.grant, got)
			}
		}
		for range 2 { // the second with a kept plan
			if got := app.query(read); !strings.Contains(got, step.want) {
				t.Errorf("after %q: %s, want %s", step.grant, got, step.want)
			}
		}
	}
	if got := root.query("REVOKE CONNECT ON DATABASE percodb FROM PUBLIC"); strings.Contains(got, "error") {
		t.Fatal(got)
	}
	if _, err := s.connectAs(map[string]string{"user": "app", "database": catalog.FirstDatabaseName}); err == nil || ToPGError(err).Code != pgerror.InsufficientPrivilege {
		t.Errorf("without CONNECT: %v", err)
	}
	if _, err := s.connectAs(map[string]string{"user": "nobody", "database": catalog.FirstDatabaseName}); err == nil || ToPGError(err).Code != pgerror.InvalidAuthorization {
		t.Errorf("without a role: %v", err)
	}
}

// Goal: the check of a plan that was authorized before allocates nothing, for roles with grants as for superusers.
func TestAuthorizedPlansCostNothing(t *testing.T) {
	s := newTestServer(t)
	root := s.connect()
	for _, text := range []string{"CREATE TABLE t(id int PRIMARY KEY)", "CREATE ROLE app LOGIN", "GRANT SELECT ON t TO app"} {
		if got := root.query(text); strings.Contains(got, "error") {
			t.Fatal(got)
		}
	}
	app, err := s.connectAs(map[string]string{"user": "app", "database": catalog.FirstDatabaseName})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, c := range []*client{root, app} {
		if got := c.query("SELECT id FROM t WHERE id = 1"); strings.Contains(got, "error") {
			t.Fatal(got)
		}
		if err := c.tx.begin(ctx); err != nil {
			t.Fatal(err)
		}
		var plan *cachedPlan
		for _, plan = range c.plans.byKey {
		}
		if plan == nil || len(plan.Needs) != 1 {
			t.Fatalf("plan %+v", plan)
		}
		allocs := testing.AllocsPerRun(100, func() {
			if ok, err := plan.holds(ctx, &c.tx, c.tx.resolver); err != nil || !ok {
				t.Fatal(ok, err)
			}
			if err := c.tx.authorize(ctx, plan); err != nil {
				t.Fatal(err)
			}
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations", c.identity.user, allocs)
		}
		c.tx.abort()
	}
}

// BenchmarkPrivileges measures what authorization adds to an execution of a cached plan of a point read: for a superuser, for a role with
// grants, and for one that executes a function whose privileges have been changed.
func BenchmarkPrivileges(b *testing.B) {
	s := newTestServer(b)
	root := s.connect()
	root.must("CREATE TABLE t(id int PRIMARY KEY)", "CREATE ROLE app LOGIN", "GRANT SELECT ON t TO app",
		"REVOKE EXECUTE ON FUNCTION initcap(text) FROM PUBLIC", "GRANT EXECUTE ON FUNCTION initcap(text) TO app")
	const read, call = "SELECT id FROM t WHERE id = 1", "SELECT initcap('x') FROM t WHERE id = 1"
	for _, c := range []struct{ name, user, text string }{
		{"superuser", "postgres", read}, {"role", "app", read}, {"function", "app", call},
	} {
		b.Run(c.name, func(b *testing.B) {
			session, err := s.connectAs(map[string]string{"user": c.user, "database": catalog.FirstDatabaseName})
			if err != nil {
				b.Fatal(err)
			}
			session.must(c.text)
			ctx := context.Background()
			if err := session.tx.begin(ctx); err != nil {
				b.Fatal(err)
			}
			defer session.tx.abort()
			for _, plan := range session.plans.byKey {
				b.ReportAllocs()
				for b.Loop() {
					if err := session.tx.authorize(ctx, plan); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// Goal: who may read the past is decided by the privileges of the present. Method: a role that has been granted SELECT since reads it,
// one that has lost it since does not.
func TestPrivilegesOfThePast(t *testing.T) {
	s := newTestServer(t)
	root := s.connect()
	for _, text := range []string{
		"CREATE TABLE t(id int PRIMARY KEY)", "CREATE ROLE gains LOGIN", "CREATE ROLE loses LOGIN", "GRANT SELECT ON t TO loses",
	} {
		if got := root.query(text); strings.Contains(got, "error") {
			t.Fatal(got)
		}
	}
	read, err := s.deps.Oracle.Now(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	then := strconv.FormatUint(uint64(read), 10)
	for _, text := range []string{"GRANT SELECT ON t TO gains", "REVOKE SELECT ON t FROM loses"} {
		if got := root.query(text); strings.Contains(got, "error") {
			t.Fatal(got)
		}
	}
	for user, want := range map[string]string{"gains": "row 0", "loses": "error 42501"} {
		c, err := s.connectAs(map[string]string{"user": user, "database": catalog.FirstDatabaseName})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.query("SELECT count(*) FROM t AS OF SYSTEM TIME " + then); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", user, got, want)
		}
	}
}
