package ddl

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/percolator"
)

// Goal: no acknowledged change of the schema, nor of privileges, is lost when both happen at the same time, in one process and in two, by
// statements of their own and in blocks; what cannot be done beside others fails as a conflict. Method: sessions add columns and build
// indexes while others grant and revoke, on the same tables; in the end the schema has what was acknowledged.
func TestPrivilegesBesideSchemaChanges(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			opts := catalog.Options{Shared: shared, Lease: 60 * time.Millisecond, PollInterval: 10 * time.Millisecond}
			first := newServer(t, opts)
			servers := []*server{first, first}
			if shared {
				servers[1] = &server{t: t, db: first.db, catalog: first.open(opts), chunk: first.chunk}
			}
			root := first.session()
			for _, text := range []string{
				"create table t (a int primary key, b int)", "insert into t select g, g from generate_series(1, 300) g", "create table u (a int)",
				"create role r0", "create role r1",
			} {
				if got := root.exec(text); strings.Contains(got, "ERROR") {
					t.Fatal(got)
				}
			}
			var wg sync.WaitGroup
			columns, held := make([]int, 4), make([]bool, 2)
			for i := range columns {
				s := servers[i%2].session()
				s.blocks = percolator.TxnOptions{Pessimistic: true, Isolation: []percolator.Isolation{percolator.SnapshotIsolation, percolator.ReadCommitted}[i/2]}
				wg.Go(func() { columns[i] = addColumns(t, s, i) })
			}
			for i := range held {
				s := servers[i%2].session()
				s.blocks = percolator.TxnOptions{Pessimistic: true}
				wg.Go(func() { held[i] = grantAndRevoke(t, s, i) })
			}
			wg.Wait()
			if findings := first.verify(); findings != "" {
				t.Fatal(findings)
			}
			for _, s := range servers {
				checkMet(t, s, columns, held)
			}
		})
	}
}

// Goal: statistics that others have made since a block's snapshot are no conflict for it, whatever it changes, in one process and in two; both
// changes last. Method: blocks that have read create, change, analyze and drop tables that another session has analyzed meanwhile.
func TestStatisticsBesideSchemaChanges(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			opts := catalog.Options{Shared: shared, Lease: 60 * time.Millisecond, PollInterval: 10 * time.Millisecond}
			first := newServer(t, opts)
			second := first
			if shared {
				second = &server{t: t, db: first.db, catalog: first.open(opts), chunk: first.chunk}
			}
			block, other := first.session(), second.session()
			block.blocks = percolator.TxnOptions{Pessimistic: true}
			must := func(s *session, texts ...string) {
				for _, text := range texts {
					if got := s.exec(text); strings.Contains(got, "ERROR") {
						t.Fatalf("%s: %s", text, got)
					}
				}
			}
			must(block, "create table t (a int primary key, b int)", "insert into t select g, g from generate_series(1, 300) g", "create table u (a int)")
			for i, change := range [][]string{
				{"create table v (a int)", "insert into v values (1)", "insert into t values (1000, 1)"},
				{"alter table t add column c int", "insert into t values (1001, 1, 1)"},
				{"create index on t (b)"},
				{"analyze t"},
				{"grant select on t to public"},
				{"drop table u"},
			} {
				must(block, "begin", "select count(*) from t")
				must(other, "analyze t", "analyze u")
				must(block, append(change, "commit")...)
				table, err := second.schema().Relation(context.Background(), "", "t")
				if err != nil || table == nil {
					t.Fatal(table, err)
				}
				stats, err := second.schema().Stats(context.Background(), table.ID)
				if err != nil || stats.Rows < 300 {
					t.Errorf("after change %d: %+v, %v", i, stats, err)
				}
			}
			if findings := first.verify(); findings != "" {
				t.Fatal(findings)
			}
		})
	}
}

// retried runs statements in turn until they succeed, and fails the test on any error but a conflict.
func retried(t *testing.T, s *session, texts ...string) {
	for {
		got := ""
		for _, text := range texts {
			if got = s.exec(text); strings.Contains(got, "ERROR") {
				break
			}
		}
		if !strings.Contains(got, "ERROR") {
			return
		}
		s.rollback()
		if !strings.Contains(got, "WriteConflict") && !strings.Contains(got, "*catalog.ConflictError") && !strings.Contains(got, "40001") &&
			!strings.Contains(got, "CommitTooLate") && !strings.Contains(got, "commit permit") && !strings.Contains(got, "SchemaChanged") {
			t.Errorf("%s: %s", texts, got)
			return
		}
	}
}

// addColumns adds columns and indexes in turn, alone and in blocks, and returns the number of columns.
func addColumns(t *testing.T, s *session, session int) (n int) {
	for i := range 6 {
		add := fmt.Sprintf("alter table t add column c%d_%d int", session, i)
		if i%2 == 0 {
			retried(t, s, "begin", add, fmt.Sprintf("alter table u add column c%d_%d int", session, i), "commit")
		} else {
			retried(t, s, add)
			retried(t, s, fmt.Sprintf("create index i%d_%d on t (b, a)", session, i))
		}
		n++
	}
	return n
}

// grantAndRevoke does both in turn for a role, and returns whether the role has the privilege in the end.
func grantAndRevoke(t *testing.T, s *session, role int) (held bool) {
	for i := range 25 {
		text := fmt.Sprintf("grant select on t to r%d", role)
		if held = i%3 != 1; !held {
			text = fmt.Sprintf("revoke select on t from r%d", role)
		}
		if i%4 == 3 {
			retried(t, s, "begin", text, "commit")
		} else {
			retried(t, s, text)
		}
		retried(t, s, fmt.Sprintf("alter role r%d connection limit %d", role, i))
	}
	return held
}

// checkMet compares the schema with what was acknowledged.
func checkMet(t *testing.T, s *server, columns []int, held []bool) {
	t.Helper()
	r := s.schema()
	table, err := r.Relation(context.Background(), "", "t")
	if err != nil || table == nil {
		t.Fatal(table, err)
	}
	for i, want := range columns {
		n := 0
		for j := range table.Columns {
			if strings.HasPrefix(table.Columns[j].Name, fmt.Sprintf("c%d_", i)) {
				n++
			}
		}
		if n != want || len(table.Indexes) != 3*len(columns) {
			t.Errorf("session %d has added %d columns of %d; %d indexes", i, n, want, len(table.Indexes))
		}
	}
	for i, want := range held {
		role := r.Roles().ByName(fmt.Sprintf("r%d", i))
		if has := catalog.NewAccess(r, role.OID).Relation(table, acl.Select, false) != 0; has != want || role.ConnectionLimit != 24 {
			t.Errorf("role %d has SELECT: %v, want %v; its limit is %d", i, has, want, role.ConnectionLimit)
		}
	}
}
