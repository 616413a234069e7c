package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// Goal: a transaction planned before an exclusive change cannot commit after it; one planned after it
// can; a change that is not exclusive fails no transaction. Method: interleave by hand.
func TestStaleWritersAreRefused(t *testing.T) {
	ctx := context.Background()
	c := newCatalog(t, newDB(t), Options{})
	desc := mustCreate(t, c, "t")
	write := func(planned *TableDescriptor, key string) func() error {
		g := c.NewGuard()
		txn := begin(t, c.db)
		g.Reset(txn)
		g.Writes(planned, 1)
		if err := txn.Put([]byte(key), []byte("v")); err != nil {
			t.Fatal(err)
		}
		return func() error {
			_, err := g.Commit(ctx)
			return err
		}
	}
	commit := write(desc, "\x02a")
	change(t, c, desc, func(d *TableDescriptor) { d.Comment = "x" }, false)
	if err := commit(); err != nil {
		t.Fatal(err)
	}
	commit = write(desc, "\x02b")
	next := change(t, c, desc, func(d *TableDescriptor) { d.Comment = "y" }, true)
	var changed *SchemaChangedError
	if err := commit(); !errors.As(err, &changed) {
		t.Fatalf("got %v", err)
	}
	if err := write(next, "\x02c")(); err != nil {
		t.Fatal(err)
	}
	err := run(t, c, func(_ *percolator.Txn, ch *Change) error { return ch.Drop(ctx, next) })
	if err != nil {
		t.Fatal(err)
	}
	if err := write(next, "\x02d")(); !errors.As(err, &changed) {
		t.Fatalf("write to a dropped table: %v", err)
	}
}

// change makes one change of a table, closing it when exclusive, and returns the new descriptor.
func change(t testing.TB, c *Catalog, old *TableDescriptor, f func(*TableDescriptor), exclusive bool) *TableDescriptor {
	t.Helper()
	next := old.Clone()
	f(next)
	err := run(t, c, func(_ *percolator.Txn, ch *Change) error {
		if exclusive {
			if err := ch.Close(context.Background(), old); err != nil {
				return err
			}
		}
		return ch.Update(context.Background(), old, next, exclusive)
	})
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Goal: I2 after a rollback to a savepoint: a transaction that has undone its change of a table's descriptor commits only if the
// table's descriptor is still the one under which it wrote. Tables that it created and wrote in between do not matter. Method:
// another change is made, or not, between the write and the change that is undone.
func TestUndoneChangesPermitNothing(t *testing.T) {
	ctx := context.Background()
	for _, opts := range []Options{{}, {Shared: true, Lease: time.Minute, PollInterval: 5 * time.Millisecond}} {
		for _, between := range []bool{false, true} {
			c := newCatalog(t, newDB(t), opts)
			desc := mustCreate(t, c, "t")
			g := c.NewGuard()
			txn := begin(t, c.db)
			g.Reset(txn)
			put := func(d *TableDescriptor, key string) {
				g.Writes(d, 1)
				if err := txn.Put([]byte(key), []byte("v")); err != nil {
					t.Fatal(err)
				}
			}
			put(desc, "\x02a")
			if between {
				change(t, c, desc, func(d *TableDescriptor) { d.Comment = "x" }, true)
			}
			mark, savepoint := g.Mark(), txn.Savepoint()
			ch, err := g.Change(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := ch.Drop(ctx, desc); err != nil {
				t.Fatal(err)
			}
			created := tableNamed(t, c, "u")
			if err := ch.Create(ctx, created); err != nil {
				t.Fatal(err)
			}
			put(created, "\x02b")
			txn.RollbackTo(savepoint)
			g.RollbackTo(mark)
			put(desc, "\x02c")
			_, err = g.Commit(ctx)
			var changed *SchemaChangedError
			if refused := errors.As(err, &changed); refused != between || err != nil && !refused {
				t.Errorf("shared %v, another change %v: %v", opts.Shared, between, err)
			}
		}
	}
}

// Goal: a closed table blocks commits until the change ends, also if the change fails.
func TestWaitBlocksWhileClosed(t *testing.T) {
	ctx := context.Background()
	c := newCatalog(t, newDB(t), Options{})
	desc := mustCreate(t, c, "t")
	ddl := c.NewGuard()
	ddl.Reset(begin(t, c.db))
	ch, err := ddl.Change(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Close(ctx, desc); err != nil {
		t.Fatal(err)
	}
	g := c.NewGuard()
	txn := begin(t, c.db)
	g.Reset(txn)
	g.Writes(desc, 1)
	if err := g.Wait(ctx); err != nil { // Nothing is written yet.
		t.Fatal(err)
	}
	if err := txn.Put([]byte("\x02k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if err := g.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	waited := make(chan error)
	go func() { waited <- g.Wait(ctx) }()
	ddl.Done(ctx, 0, nil)
	if err := <-waited; err != nil {
		t.Fatal(err)
	}
	_, err = g.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
}

// Goal: I2: with writers running in one process and in several, an index that is filled under a
// closed table ends up with exactly the rows. Method: writers put a row and one entry for each index
// they know of; meanwhile indexes are added, each filled from a snapshot taken after closing. In the
// end every index is compared with the rows.
func TestIndexesFilledUnderWritersAreComplete(t *testing.T) {
	short := Options{Shared: true, Lease: 60 * time.Millisecond, PollInterval: 15 * time.Millisecond}
	for name, opts := range map[string]Options{
		"one process": {},
		// What one process does not acknowledge in time ends with its lease.
		"short leases": short,
		// One has always a commit in flight that takes longer than a lease, so it never acknowledges.
		"slow commits": short,
		// Waiting for these would take too long.
		"acknowledged": {Shared: true, Lease: time.Hour, PollInterval: 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDB(t)
			catalogs := []*Catalog{newCatalog(t, db, opts)}
			if opts.Shared {
				catalogs = append(catalogs, newCatalog(t, db, opts))
			}
			desc := mustCreate(t, catalogs[0], "t")
			ctx, stop := context.WithCancel(context.Background())
			var wg sync.WaitGroup
			var rows, refused atomic.Int64
			if name == "slow commits" {
				for i := range 2 {
					wg.Go(func() { slowCommits(ctx, t, catalogs[1], time.Duration(i)*50*time.Millisecond) })
				}
			}
			for w := range 4 {
				c := catalogs[w%len(catalogs)]
				wg.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						err := writeRow(t, c, fmt.Sprintf("%d-%d", w, i))
						var changed *SchemaChangedError
						switch {
						case err == nil:
							rows.Add(1)
						case errors.As(err, &changed), errors.Is(err, percolator.ErrCommitTooLate):
							refused.Add(1)
						default:
							t.Errorf("writer: %v", err)
							return
						}
					}
				})
			}
			for i := range 4 {
				addIndex(t, catalogs[i%len(catalogs)], desc.Name)
				for before := rows.Load(); rows.Load() < before+20; { // let writers in between
					time.Sleep(time.Millisecond)
				}
			}
			stop()
			wg.Wait()
			checkIndexes(t, catalogs[0], int(rows.Load()))
			t.Logf("%d rows, %d commits refused", rows.Load(), refused.Load())
		})
	}
}

// slowCommits has one commit after another in flight, each for 100 ms, the first after a while.
func slowCommits(ctx context.Context, t testing.TB, c *Catalog, after time.Duration) {
	for pause(ctx, after) == nil {
		after = 0
		g := c.NewGuard()
		g.Reset(begin(t, c.db))
		if err := g.enter(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("slow commit: %v", err)
			return
		}
		_ = pause(ctx, 100*time.Millisecond)
		g.Done(ctx, 0, nil)
	}
}

// writeRow puts a row and its index entries as of the transaction's view of the schema.
func writeRow(t testing.TB, c *Catalog, name string) error {
	ctx := context.Background()
	txn, err := c.db.Begin(ctx)
	if err != nil {
		return err
	}
	g := c.NewGuard()
	g.Reset(txn)
	desc := find(t, c, txn, "t")
	g.Writes(desc, 1)
	_ = txn.Put([]byte("\x02row/"+name), []byte("v"))
	for _, ix := range desc.Indexes {
		_ = txn.Put(fmt.Appendf(nil, "\x02index%d/%s", ix.ID, name), []byte("v"))
	}
	if err := g.Wait(ctx); err != nil {
		return err
	}
	_, err = g.Commit(ctx)
	return err
}

// addIndex closes the table, fills a new index from a snapshot taken then, and publishes it.
func addIndex(t testing.TB, c *Catalog, table string) {
	t.Helper()
	ctx := context.Background()
	for {
		g := c.NewGuard()
		g.Reset(begin(t, c.db))
		ch, err := g.Change(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Close(ctx, find(t, c, begin(t, c.db), table)); err != nil {
			t.Fatal(err)
		}
		txn := begin(t, c.db)
		g.Continue(txn)
		old := find(t, c, txn, table)
		next := old.Clone()
		next.Indexes = append(next.Indexes, IndexDescriptor{ID: next.NextIndexID})
		for _, name := range scanNames(t, txn, "\x02row/") {
			_ = txn.Put(fmt.Appendf(nil, "\x02index%d/%s", next.NextIndexID, name), []byte("v"))
		}
		next.NextIndexID++
		if err := ch.Update(ctx, old, next, true); err != nil {
			t.Fatal(err)
		}
		_, err = g.Commit(ctx)
		var conflict *mvcc.WriteConflictError
		if errors.As(err, &conflict) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
}

func scanNames(t testing.TB, txn *percolator.Txn, prefix string) []string {
	t.Helper()
	end := []byte(prefix)
	end[len(end)-1]++
	it := txn.Scan(context.Background(), kv.Span{Start: []byte(prefix), End: end}, percolator.ScanOptions{})
	defer it.Close()
	var names []string
	for it.Next(context.Background()) {
		names = append(names, string(it.Key()[len(prefix):]))
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

func checkIndexes(t testing.TB, c *Catalog, rows int) {
	t.Helper()
	txn := begin(t, c.db)
	want := scanNames(t, txn, "\x02row/")
	if len(want) != rows {
		t.Fatalf("%d rows, %d were acknowledged", len(want), rows)
	}
	desc := find(t, c, txn, "t")
	if len(desc.Indexes) != 4 {
		t.Fatalf("%d indexes", len(desc.Indexes))
	}
	for _, ix := range desc.Indexes {
		got := scanNames(t, txn, fmt.Sprintf("\x02index%d/", ix.ID))
		if len(got) != len(want) {
			t.Fatalf("index %d has %d entries for %d rows", ix.ID, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("index %d: entry %q, row %q", ix.ID, got[i], want[i])
			}
		}
	}
}

// Goal: a guarded transaction that bypasses Guard.Commit is refused and leaves nothing, and one that wrote nothing needs no
// permit.
func TestCommitWithoutPermit(t *testing.T) {
	ctx := context.Background()
	c := newCatalog(t, newDB(t), Options{})
	desc := mustCreate(t, c, "t")
	for _, wrote := range []bool{true, false} {
		g := c.NewGuard()
		txn := begin(t, c.db)
		g.Reset(txn)
		g.Writes(desc, 1)
		if wrote {
			if err := txn.Put([]byte("\x02k"), []byte("v")); err != nil {
				t.Fatal(err)
			}
		}
		ts, err := txn.Commit(ctx)
		if errors.Is(err, errNoPermit) != wrote || ts != 0 {
			t.Errorf("wrote %v: %d, %v", wrote, ts, err)
		}
		g.Done(ctx, 0, err)
	}
	if value, err := begin(t, c.db).Get(ctx, []byte("\x02k")); err != nil || value != nil {
		t.Errorf("committed without a permit: %q, %v", value, err)
	}
	if n := len(c.gate.mu.tables); n != 0 {
		t.Errorf("%d tables have commits in flight", n)
	}
}

// slowPermit is the permit of a guard whose commit begins a while after it was allowed.
type slowPermit struct {
	*Guard
	renewed int
	between func()
}

func (p *slowPermit) MaxCommitTS() (tso.Timestamp, error) {
	until, err := p.Guard.MaxCommitTS()
	if p.renewed == 0 {
		p.between()
	}
	return until, err
}

func (p *slowPermit) Renew(ctx context.Context) error {
	p.renewed++
	return p.Guard.Renew(ctx)
}

// Goal: a commit that takes longer than a lease of the schema succeeds, a schema change's as well, unless the table
// was changed meanwhile. Method: let the lease pass, or another process change the table, between the look that allows
// the commit and the commit.
func TestCommitsThatOutlastALease(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	opts := Options{Shared: true, Lease: 400 * time.Millisecond, PollInterval: 5 * time.Millisecond}
	c, other := newCatalog(t, db, opts), newCatalog(t, db, opts)
	desc := mustCreate(t, c, "t")
	outlast := func() { time.Sleep(2 * opts.Lease) } // Leases end by the clock.
	write := func(between func()) error {
		g := &slowPermit{Guard: c.NewGuard(), between: between}
		txn := begin(t, db)
		g.Reset(txn)
		txn.SetCommitPermit(g)
		g.Writes(desc, 1)
		if err := txn.Put([]byte("\x02k"), []byte("v")); err != nil {
			t.Fatal(err)
		}
		_, err := g.Commit(ctx)
		if g.renewed != 1 {
			t.Errorf("the permit was renewed %d times", g.renewed)
		}
		<-c.lease.looking
		defer func() { c.lease.looking <- struct{}{} }()
		for _, l := range append(slices.Clone(c.lease.former), c.lease.seen.Load()) {
			if n := l.inFlight.Load(); n != 0 {
				t.Errorf("%d commits are in flight", n)
			}
		}
		return err
	}
	if err := write(outlast); err != nil {
		t.Fatal(err)
	}
	var changed *SchemaChangedError
	err := write(func() {
		change(t, other, desc, func(d *TableDescriptor) { d.Comment = "x" }, true)
		outlast()
	})
	if !errors.As(err, &changed) {
		t.Fatalf("a table was changed during the commit: %v", err)
	}
	g := &slowPermit{Guard: c.NewGuard(), between: outlast}
	txn := begin(t, db)
	g.Reset(txn)
	txn.SetCommitPermit(g)
	ch, err := g.Change(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Create(ctx, tableNamed(t, c, "u")); err != nil {
		t.Fatal(err)
	}
	_, err = g.Commit(ctx)
	if err != nil || g.renewed != 1 {
		t.Fatalf("schema change: %v, renewed %d times", err, g.renewed)
	}
}

// Goal: a process that does not answer is struck out, and its record is deleted when none of its looks can be left;
// if the process is alive, it detects this, and registers before it commits.
func TestMembersThatDoNotAnswer(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	opts := Options{Shared: true, Lease: 100 * time.Millisecond, PollInterval: 5 * time.Millisecond}
	silent := newCatalog(t, db, opts)
	c := newCatalog(t, db, opts)
	desc := mustCreate(t, c, "t")
	silent.lease.cancel()
	<-silent.lease.done
	members := func() (in, out int) {
		t.Helper()
		for _, r := range records(t, db) {
			if r.Out == 0 {
				in++
			} else {
				out++
			}
		}
		return in, out
	}
	if in, out := members(); in != 2 || out != 0 {
		t.Fatalf("%d and %d members", in, out)
	}
	change(t, c, desc, func(d *TableDescriptor) { d.Comment = "x" }, true)
	if in, out := members(); in != 1 || out != 1 {
		t.Fatalf("%d and %d members after a change", in, out)
	}
	for in, out := members(); in+out != 1; in, out = members() {
		desc = change(t, c, find(t, c, begin(t, db), "t"), func(d *TableDescriptor) { d.Comment = "y" }, true)
	}
	txn := begin(t, db)
	g := silent.NewGuard()
	g.Reset(txn)
	g.Writes(desc, 1)
	if err := txn.Put([]byte("\x02k"), []byte("v")); err != nil {
		t.Fatal(err)
	}
	_, err := g.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if in, out := members(); in != 2 || out != 0 {
		t.Fatalf("%d and %d members after it came back", in, out)
	}
}

// Goal: a process does not acknowledge a marker while a commit permitted by an older look may still
// happen: a running commit, or an unanswered one until its lease ends.
func TestCommitsInFlightAreNotAcknowledged(t *testing.T) {
	ctx := context.Background()
	for _, undetermined := range []bool{false, true} {
		t.Run(fmt.Sprintf("undetermined=%v", undetermined), func(t *testing.T) {
			db := newDB(t)
			c := newCatalog(t, db, Options{Shared: true, Lease: 2 * time.Second, PollInterval: 5 * time.Millisecond})
			desc := mustCreate(t, c, "t")
			writer := c.NewGuard()
			writer.Reset(begin(t, db))
			writer.Writes(desc, 1)
			if err := writer.enter(ctx); err != nil {
				t.Fatal(err)
			}
			until := writer.maxCommitTS
			ddl := c.NewGuard()
			ddl.Reset(begin(t, db))
			ch, err := ddl.Change(ctx)
			if err != nil {
				t.Fatal(err)
			}
			closed := make(chan error)
			go func() { closed <- ch.Close(ctx, desc) }()
			for c.lease.seen.Load().closing[desc.ID].Owner == "" {
				time.Sleep(time.Millisecond)
			}
			if undetermined {
				writer.Done(ctx, 0, &percolator.UndeterminedError{})
			}
			for range 5 { // Looks that see the marker, and have every reason to say so.
				if _, err := c.lease.look(ctx, time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			at := begin(t, db).StartTS()
			for _, r := range records(t, db) {
				if r.Seen != 0 && at <= until {
					t.Error("acknowledged")
				}
			}
			if !undetermined {
				writer.Done(ctx, 0, nil)
			}
			if err := <-closed; err != nil {
				t.Fatal(err)
			}
			ddl.Done(ctx, 0, nil)
		})
	}
}
