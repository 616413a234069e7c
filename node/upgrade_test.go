package node

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// unpack extracts a kept directory.
func unpack(t *testing.T, archive string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	f, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewReader(zipped)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: a directory from before there were roles opens with its rows, and has the superusers postgres and percodb, also when it is opened
// again. Other names are refused. Method: a directory that an earlier percodb wrote.
func TestUpgradeFromWithoutRoles(t *testing.T) {
	opts := Options{Role: RoleAll, Data: unpack(t, "testdata/without-roles.tar.gz"), AcceptClockStep: true, Listen: "127.0.0.1:0"}
	for range 2 {
		n := start(t, opts)
		if got := query(t, n, "select string_agg(v, ',' order by id) from kept"); got != "a,b" {
			t.Errorf("rows %q", got)
		}
		if got := query(t, n, "select string_agg(rolname, ',' order by rolname) from pg_roles where rolsuper and rolcanlogin"); got != "percodb,postgres" {
			t.Errorf("superusers %q", got)
		}
		for user, want := range map[string]string{"percodb": "", "someone": `role "someone" does not exist (SQLSTATE 28000)`} {
			conn, err := pgx.Connect(context.Background(), "postgres://"+user+"@"+n.Addr().String()+"/percodb?sslmode=disable")
			if err == nil {
				conn.Close(context.Background())
			}
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v", user, err)
			}
		}
		n.Close(context.Background())
	}
}

// Goal: a directory from before there were policies and types of users opens with its rows, roles and privileges, also when it is opened
// again, and takes both. Method: a directory that an earlier percodb wrote.
func TestUpgradeFromWithoutPolicies(t *testing.T) {
	opts := Options{Role: RoleAll, Data: unpack(t, "testdata/without-policies.tar.gz"), AcceptClockStep: true, Listen: "127.0.0.1:0"}
	for i := range 2 {
		n := start(t, opts)
		if got := query(t, n, "select string_agg(v, ',' order by id) from kept"); got != "a,b" {
			t.Errorf("rows %q", got)
		}
		if got := query(t, n, "select has_table_privilege('reader', 'kept', 'select')::text || rolconfig::text from pg_roles where rolname = 'reader'"); got != "true{search_path=public}" {
			t.Errorf("privileges and settings %q", got)
		}
		if i == 0 {
			query(t, n, "create type mood as enum ('sad', 'ok')")
			query(t, n, "alter table kept add m mood")
			query(t, n, "create policy own on kept using (v = current_user)")
		}
		if got := query(t, n, "select string_agg(polname, ',') from pg_policy"); got != "own" {
			t.Errorf("policies %q", got)
		}
		n.Close(context.Background())
	}
}

// Goal: a directory from before there were several databases opens with all that it has in the first one, whose owner, privileges and limit
// stay, also when it is opened again, and takes others. Method: a directory that an earlier percodb wrote.
func TestUpgradeFromWithoutDatabases(t *testing.T) {
	opts := Options{Role: RoleAll, Data: unpack(t, "testdata/without-databases.tar.gz"), AcceptClockStep: true, Listen: "127.0.0.1:0"}
	for i := range 2 {
		n := start(t, opts)
		if got := query(t, n, "select string_agg(v || twice(id), ',' order by id) from kept where v in (select v from seen) and 'ok'::mood > 'sad'"); got != "a2,b4" {
			t.Errorf("rows %q", got)
		}
		want := "keeper|9|{=Tc/keeper,keeper=CTc/keeper,reader=Cc/keeper}|{work_mem=5MB}"
		if got := query(t, n, `select concat_ws('|', pg_get_userbyid(datdba), datconnlimit, datacl, setconfig)
			from pg_database d join pg_db_role_setting on setdatabase = d.oid where datname = current_database()`); got != want {
			t.Errorf("the database is %q, want %q", got, want)
		}
		want = "percodb,template0,template1"
		if i == 0 {
			query(t, n, "create database another")
			want = "another," + want
		} else {
			query(t, n, "drop database another")
		}
		if got := query(t, n, "select string_agg(datname, ',' order by datname) from pg_database"); got != want {
			t.Errorf("databases %q, want %q", got, want)
		}
		n.Close(context.Background())
	}
}

// Goal: a directory from before foreign keys could reference partitioned tables opens with its partitions and their foreign keys, also when it is
// opened again, and takes such foreign keys. Method: a directory that an earlier percodb wrote.
func TestUpgradeFromWithoutPartitionedKeys(t *testing.T) {
	opts := Options{Role: RoleAll, Data: unpack(t, "testdata/without-partitioned-keys.tar.gz"), AcceptClockStep: true, Listen: "127.0.0.1:0"}
	for i := range 2 {
		n := start(t, opts)
		if i == 0 {
			query(t, n, "create table seen (id int references kept on delete cascade)")
			query(t, n, "insert into seen values (1), (11)")
			query(t, n, "delete from kept where id = 11")
		}
		if got := query(t, n, "select string_agg(id || v, ',') from kept where id in (select id from seen) and id in (select n from marks)"); got != "1a" {
			t.Errorf("rows %q", got)
		}
		if got := query(t, n, "select string_agg(conname || ' ' || confrelid::regclass, ',' order by conname) from pg_constraint where contype = 'f'"); got !=
			"marks_n_fkey kept_low,seen_id_fkey kept,seen_id_fkey1 kept_low,seen_id_fkey2 kept_high" {
			t.Errorf("foreign keys %q", got)
		}
		n.Close(context.Background())
	}
}

// Goal: a directory from before indexes were built while their tables are written opens with its rows and indexes, also when it is opened
// again, and builds others. Method: a directory that an earlier percodb wrote.
func TestUpgradeFromWithoutBuilds(t *testing.T) {
	opts := Options{Role: RoleAll, Data: unpack(t, "testdata/without-builds.tar.gz"), AcceptClockStep: true, Listen: "127.0.0.1:0"}
	for i := range 2 {
		n := start(t, opts)
		if got := query(t, n, "select count(*) || max(v) from kept where v > 'v98'"); got != "20v99" {
			t.Errorf("rows %q", got)
		}
		if i == 0 {
			query(t, n, "create index later on kept (v desc)")
		}
		if got := query(t, n, "select string_agg(indexrelid::regclass || ' ' || indisvalid, ', ' order by 1) from pg_index where indrelid = 'kept'::regclass"); got != "kept_pkey true, kept_v true, later true" {
			t.Errorf("indexes %q", got)
		}
		n.Close(context.Background())
	}
}

// Goal: a directory from before users could define operators, casts and operator classes opens with its rows, partitions and views, also when it is
// opened again, and takes such objects. Method: a directory that an earlier percodb wrote.
func TestUpgradeFromWithoutOperators(t *testing.T) {
	opts := Options{Role: RoleAll, Data: unpack(t, "testdata/without-operators.tar.gz"), AcceptClockStep: true, Listen: "127.0.0.1:0"}
	for i := range 2 {
		n := start(t, opts)
		if got := query(t, n, "select string_agg(t, ',' order by id) from seen"); got != "sada,okb" {
			t.Errorf("rows %q", got)
		}
		if i == 0 {
			query(t, n, "create function better(mood, mood) returns boolean language sql immutable as 'select score($1) > score($2)'")
			query(t, n, "create operator >>> (leftarg = mood, rightarg = mood, function = better)")
			query(t, n, "create cast (mood as int) with function score(mood) as assignment")
			query(t, n, "create function spread(int, bigint) returns bigint language sql immutable as 'select $1::bigint'")
			query(t, n, "create operator class spread_ops for type int using hash as operator 1 =, function 2 spread(int, bigint)")
			query(t, n, "create table spread_rows (a int) partition by hash (a spread_ops)")
			query(t, n, "create table even_rows partition of spread_rows for values with (modulus 2, remainder 0)")
			query(t, n, "create table odd_rows partition of spread_rows for values with (modulus 2, remainder 1)")
			query(t, n, "insert into spread_rows select generate_series(1, 9)")
			query(t, n, "create view better_than_sad as select id, m::int as score from kept where m >>> 'sad'")
		}
		if got := query(t, n, "select string_agg(id || ' ' || score, ',') from better_than_sad"); got != "2 2" {
			t.Errorf("the view has %q", got)
		}
		if got := query(t, n, "select string_agg(part || ' ' || n, ',' order by part) from (select tableoid::regclass::text, count(*) from spread_rows group by 1) p(part, n)"); got != "even_rows 5,odd_rows 4" && got != "even_rows 4,odd_rows 5" {
			t.Errorf("partitions %q", got)
		}
		n.Close(context.Background())
	}
}
