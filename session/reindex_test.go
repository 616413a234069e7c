package session

import (
	"context"
	"testing"

	"github.com/percodb/percodb/percolator"
)

// makeOutdated makes an index of a table look as if another version of a collation's rules had made its keys.
func (s *testServer) makeOutdated(table, index string) {
	s.t.Helper()
	ctx := context.Background()
	g := s.deps.Catalog.NewGuard()
	ch, err := g.Change(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer g.Done(ctx, 0, nil)
	txn, err := s.deps.DB.BeginTxn(ctx, percolator.TxnOptions{Isolation: percolator.ReadCommitted, Pessimistic: true})
	if err != nil {
		s.t.Fatal(err)
	}
	g.Continue(txn)
	r, err := ch.Resolver(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	t, err := r.Relation(ctx, "public", table)
	if err != nil || t == nil {
		s.t.Fatal(t, err)
	}
	next := t.Clone()
	next.IndexNamed(index).Columns[0].Rules = "cldr-1"
	if err := ch.Update(ctx, t, next, true); err != nil {
		s.t.Fatal(err)
	}
	if _, err := g.Commit(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// Goal: keys that other rules of a collation have made are neither read nor written, and REINDEX makes them anew.
//
// Method: the recorded version of an index, and of a primary key, is changed. Reads go without the index, changes are refused and name it; without
// the rows' own keys reads are refused, too.
func TestOutdatedIndexes(t *testing.T) {
	server := newTestServer(t)
	c := server.connect()
	c.must(`create table t (k text collate "de-x-icu" primary key, v text collate "sv-x-icu")`, "create index t_v on t (v)",
		"insert into t values ('a', 'x'), ('b', 'y')")
	server.makeOutdated("t", "t_v")
	c.transcript(`
		select k from t where v = 'y' → columns k; row b; SELECT 1; I
		insert into t values ('c', 'z') → error 55000; I
		update t set v = 'z' → error 55000; I
		delete from t → error 55000; I
		reindex index t_v → REINDEX; I
		insert into t values ('c', 'z') → INSERT 0 1; I
		select k from t where v = 'z' → columns k; row c; SELECT 1; I
	`)
	server.makeOutdated("t", "t_pkey")
	c.transcript(`
		select * from t → error 55000; I
		insert into t values ('d', 'z') → error 55000; I
		reindex index t_v → REINDEX; I
		select k from t order by k → columns k; row a; row b; row c; SELECT 3; I
		insert into t values ('d', 'z') → INSERT 0 1; I
	`)
}
