package node

import (
	"context"
	"testing"

	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/internal/storetest"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
)

// Goal: garbage collection is given the keys of dropped tables and indexes, until it has removed them.
func TestDroppedSpans(t *testing.T) {
	ctx := context.Background()
	store := storetest.Open(t, nil)
	for _, text := range []string{
		"create table a (id int primary key)", "create table b (id int primary key, n int)", "create index i on b (n)",
		"drop table a", "drop index i",
	} {
		stmt, err := sql.ParseTree(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ddl.Run(ctx, stmt, ddl.Deps{DB: store.DB, Catalog: store.Catalog, Env: &builtin.Env{}, OneTransaction: true}); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	d := drops{store.DB}
	list := func() (ids []uint64) {
		now, err := store.Oracle.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		spans, err := d.Dropped(ctx, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range spans {
			if string(span.Span.Start) >= string(span.Span.End) {
				t.Errorf("span %x to %x", span.Span.Start, span.Span.End)
			}
			ids = append(ids, span.ID)
		}
		return ids
	}
	ids := list()
	if len(ids) != 2 {
		t.Fatalf("%d spans of a dropped table and a dropped index", len(ids))
	}
	if err := d.Forget(ctx, ids[:1]); err != nil {
		t.Fatal(err)
	}
	if left := list(); len(left) != 1 || left[0] != ids[1] {
		t.Errorf("%v are left of %v", left, ids)
	}
	if err := d.Forget(ctx, list()); err != nil || len(list()) != 0 {
		t.Errorf("%v are left, %v", list(), err)
	}
}
