package node

import (
	"context"
	"slices"
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
		"create observer o on b", "create observer p on a", "drop table a", "drop index i", "drop observer o",
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
			if span.Observer != 0 {
				ids = append(ids, span.ID)
				continue
			}
			if string(span.Span.Start) >= string(span.Span.End) {
				t.Errorf("span %x to %x", span.Span.Start, span.Span.End)
			}
			ids = append(ids, span.ID)
		}
		return ids
	}
	ids := list()
	if len(ids) != 5 {
		t.Fatalf("%d records of a dropped table and a dropped index, and of two observers and the acknowledgements of one", len(ids))
	}
	if err := d.Forget(ctx, ids[:1]); err != nil {
		t.Fatal(err)
	}
	if left := list(); !slices.Equal(left, ids[1:]) {
		t.Errorf("%v are left of %v", left, ids)
	}
	if err := d.Forget(ctx, list()); err != nil || len(list()) != 0 {
		t.Errorf("%v are left, %v", list(), err)
	}
}
