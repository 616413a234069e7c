package load

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/schema"
	"github.com/percodb/percodb/internal/testdb"
)

// progress interrupts a load after a number of calls of Add in the phase of rows.
type progress struct {
	phase     string
	left      int
	interrupt func()
}

func (p *progress) Phase(name string, _ int64) { p.phase = name }

func (p *progress) Add(int64) {
	if p.left--; p.left == 0 && p.phase == "rows" {
		p.interrupt()
	}
}

// TestInterruptedLoad: a load that is interrupted repeatedly completes, with every row
// once; other settings are refused, and so is another load of a complete database. Method: on a server,
// cancel the context after a few batches; count the rows at the end.
func TestInterruptedLoad(t *testing.T) {
	ctx := context.Background()
	dsn := testdb.Schema(ctx, t, "percodb_test_tpce_load")
	if _, err := Drop(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	scale := gen.Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 10, MarketDays: 31, NewsBytes: 300, Seed: 3, ShortHistory: true}
	load := func(after int) (Summary, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return Run(ctx, Options{URLs: []string{dsn}, Scale: scale, Workers: 2, Progress: &progress{left: after, interrupt: cancel}})
	}
	for _, after := range []int{1, 3} {
		if _, err := load(after); !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted after %d batches: %v", after, err)
		}
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := Read(ctx, conn); err == nil {
		t.Error("half a load was taken for a whole one")
	}
	scale.Seed++
	var other *OtherError
	if _, err := load(0); !errors.As(err, &other) {
		t.Errorf("another seed: %v", err)
	}
	scale.Seed--
	sum, err := load(0)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	for table, want := range sum.Rows {
		var n int64
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM "+schema.Table(table).String()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if total += n; n != want {
			t.Errorf("%s has %d rows, want %d", schema.Table(table), n, want)
		}
	}
	if !sum.Resumed || sum.Copied == 0 || sum.Copied >= total {
		t.Errorf("resumed %v, copied %d of %d rows", sum.Resumed, sum.Copied, total)
	}
	if loaded, err := Read(ctx, conn); err != nil || loaded.Rows != sum.Rows || loaded.Settings.Scale != scale {
		t.Errorf("read %+v, %v", loaded, err)
	}
	if _, err := load(0); !errors.Is(err, ErrLoaded) {
		t.Errorf("a second load: %v", err)
	}
}

// TestForeignKeys: the server accepts all 49 foreign keys on a load, and dropping succeeds; a table that does not
// belong to the load is not dropped.
func TestForeignKeys(t *testing.T) {
	ctx := context.Background()
	dsn := testdb.Schema(ctx, t, "percodb_test_tpce_load")
	if _, err := Drop(ctx, dsn); err != nil {
		t.Fatal(err)
	}
	scale := gen.Scale{Customers: 1000, TradeDays: 1, TradesPerCustomer: 2, MarketDays: 31, NewsBytes: 300, Seed: 3, ShortHistory: true}
	run := func() error {
		_, err := Run(ctx, Options{URLs: []string{dsn}, Scale: scale, ForeignKeys: true, Progress: &progress{}})
		return err
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if keys, err := constraints(ctx, conn); err != nil || len(keys) != 49 {
		t.Errorf("%d foreign keys, %v", len(keys), err)
	}
	if found, err := Drop(ctx, dsn); err != nil || !found {
		t.Fatalf("drop: %v, %v", found, err)
	}
	if found, err := Drop(ctx, dsn); err != nil || found {
		t.Errorf("a second drop: %v, %v", found, err)
	}
	if _, err := conn.Exec(ctx, "CREATE TABLE customer (name text); INSERT INTO customer VALUES ('somebody''s')"); err != nil {
		t.Fatal(err)
	}
	if err := run(); err == nil {
		t.Error("somebody's table was replaced")
	}
	if _, err := conn.Exec(ctx, "DROP TABLE customer"); err != nil {
		t.Fatal(err)
	}
}
