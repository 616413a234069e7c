package wire_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Goal: policies hold in every form of the protocol and for reads of the past; nothing else tells a role what they hide: messages, plans
// with measurements, system views. Method: each as a role whose policies hide rows.
func TestPoliciesOnTheWire(t *testing.T) {
	root := connect(t, "")
	withRoles(t, root, "rls_a", "rls_b", "rls_m")
	execAll(t, root, "drop table if exists rls_t, rls_u, rls_member", "create table rls_t(id int primary key, tenant int, n int unique check (n > 0))",
		"insert into rls_t values (1, 1, 10), (2, 2, 20), (3, 2, 30)", "create table rls_member(who name, tenant int)",
		"insert into rls_member values ('rls_a', 1), ('rls_b', 2)", "grant all on rls_t, rls_member to public", "grant pg_monitor to rls_m")
	t.Cleanup(func() { execAll(t, connect(t, ""), "drop table rls_t, rls_member cascade") })
	a, m := connectAs(t, "rls_a"), connectAs(t, "rls_m")
	before := instant(t, root)
	const past = "select id from rls_t as of system time '"
	wantRows(t, a, "1|2|3", past+before+"' order by id")
	execAll(t, root, "create policy p on rls_t using (tenant = (select x.tenant from rls_member x where x.who = current_user))",
		"alter table rls_t enable row level security")

	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec, pgx.QueryExecModeCacheStatement, pgx.QueryExecModeDescribeExec} {
		wantRows(t, a, "1", "select id from rls_t order by id", mode)
		wantRows(t, a, "1", "select id from rls_t where 100 / (20 - n) > 0 order by id", mode)
		wantRows(t, a, "", "select id from rls_t where id = $1", mode, 2)
		// The policies of the present decide about the past.
		wantRows(t, a, "1", past+before+"' order by id", mode)
		wantRows(t, root, "1|2|3", past+before+"' order by id", mode)
	}
	execAll(t, a, "begin as of system time '"+before+"'")
	wantRows(t, a, "1", "select id from rls_t order by id")
	execAll(t, a, "rollback")

	// A policy that names what the past does not have hides everything.
	execAll(t, root, "alter table rls_t add column late int default 1", "create policy late on rls_t as restrictive using (late = 1)")
	wantRows(t, a, "1", "select id from rls_t order by id")
	wantCode(t, a, "42703", past+before+"' order by id")
	execAll(t, root, "drop policy late on rls_t", "alter table rls_t drop column late")
	wantRows(t, a, "1", past+before+"' order by id")

	for _, c := range []struct{ text, code, detail string }{
		{"insert into rls_t values (2, 1, 21)", "23505", ""},
		{"insert into rls_t values (4, 1, 20)", "23505", ""},
		{"insert into rls_t values (4, 1, -1)", "23514", ""},
		{"insert into rls_t values (null, 1, 21)", "23502", ""},
		{"update rls_t set n = 20", "23505", ""},
		{"insert into rls_t values (4, 2, -1)", "42501", ""},
		{"insert into rls_t values (2, 1, 21) on conflict (id) do update set n = rls_t.n + 1 where 1 / (rls_t.n - 20) > 0", "42501", ""},
	} {
		_, err := a.PgConn().Exec(testContext(t), c.text).ReadAll()
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != c.code || e.Detail != c.detail {
			t.Errorf("%s: %v", c.text, err)
		}
	}

	// Whether a constant is evaluated, and fails, does not tell which values hidden rows have.
	for _, with := range []string{"tenant = 1", "tenant = (select x.tenant from rls_member x where x.who = current_user)",
		"exists (select 1 from rls_member x where x.who = current_user and x.tenant = rls_t.tenant)"} {
		execAll(t, root, "alter policy p on rls_t using ("+with+")")
		for _, text := range []string{
			"select id from rls_t where n = $1 and id = 1 / $2::int", "select id from rls_t where n = $1 and tenant = 1 / $2::int",
			"select id from rls_t where n <> $1 or n = 1 / $2::int", "select id from rls_t where n = $1 and tenant = (select 1 / $2::int)",
			"select id from rls_t where case when n = $1 then n = 1 / $2::int else false end",
		} {
			_, hit := rows(t, a, text, 20, 0)
			_, miss := rows(t, a, text, 99, 0)
			if failure(hit) != failure(miss) {
				t.Errorf("%s, using %s: %v for a hidden value, %v for none", text, with, hit, miss)
			}
		}
	}
	execAll(t, root, "alter policy p on rls_t using (tenant = (select x.tenant from rls_member x where x.who = current_user))")

	// What is measured below a policy is not shown.
	plan, err := rows(t, a, "explain analyze select * from rls_t where n / n = 1")
	if err != nil || !strings.Contains(plan, "policies p") || strings.Contains(plan, "rows=3") || strings.Contains(plan, "loops=3") {
		t.Errorf("EXPLAIN ANALYZE: %s, %v", plan, err)
	}

	// A transaction that holds a lock of a hidden row.
	execAll(t, root, "begin", "update rls_t set n = 22 where id = 2")
	wantRows(t, m, " 0", "select key, length(key_bytes) from percodb.locks where table_name = 'rls_t' limit 1")
	execAll(t, root, "rollback")

	// The role that executes a statement decides, not the one that prepared it.
	execAll(t, root, "set role rls_b", "prepare q as select id from rls_t order by id")
	wantRows(t, root, "2|3", "execute q")
	execAll(t, root, "set role rls_a")
	wantRows(t, root, "1", "execute q")
	execAll(t, root, "reset role")
	wantRows(t, root, "1|2|3", "execute q")
	execAll(t, root, "deallocate q")
	execAll(t, a, "set row_security = off")
	wantCode(t, a, "42501", "select id from rls_t order by id", pgx.QueryExecModeCacheStatement)
	execAll(t, a, "reset row_security")
	wantRows(t, a, "1", "select id from rls_t order by id", pgx.QueryExecModeCacheStatement)

	// A portal that was bound before SET ROLE.
	execAll(t, root, "set role rls_b")
	pipe := root.PgConn().StartPipeline(testContext(t))
	pipe.SendQueryParams("select set_config('role', 'rls_a', false)", nil, nil, nil, nil)
	pipe.SendQueryParams("select id from rls_t order by id", nil, nil, nil, nil)
	if err := pipe.Sync(); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		r, err := pipe.GetResults()
		if err != nil {
			t.Fatal(err)
		}
		if _, synced := r.(*pgconn.PipelineSync); synced {
			break
		}
		for reader := r.(*pgconn.ResultReader); reader.NextRow(); {
			got = append(got, string(reader.Values()[0]))
		}
	}
	if err := pipe.Close(); err != nil || strings.Join(got, "|") != "rls_a|1" {
		t.Errorf("pipeline: %v, %v", got, err)
	}
	execAll(t, root, "reset role")
}
