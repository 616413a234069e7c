package catalog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/tso"
)

// records returns the members' records.
func records(t testing.TB, r *percolator.DB) (all []memberRecord) {
	t.Helper()
	err := scan(context.Background(), begin(t, r), wordMember, func(key, value []byte) error {
		var m memberRecord
		err := decode(key, value, &m)
		all = append(all, m)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inFlight begins a commit of c and leaves it in flight until the returned function is called.
func inFlight(t testing.TB, c *Catalog, desc *TableDescriptor) (done func(err error)) {
	t.Helper()
	g := c.NewGuard()
	g.Reset(begin(t, c.db))
	g.Writes(desc, 1)
	if err := g.enter(context.Background()); err != nil {
		t.Fatal(err)
	}
	return func(err error) { g.Done(context.Background(), 0, err) }
}

// mustLook has c look at the store.
func mustLook(t testing.TB, c *Catalog) *look {
	t.Helper()
	seen, err := c.lease.look(context.Background(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

// mark sets a marker of c on a table, without waiting.
func mark(t testing.TB, c *Catalog, desc *TableDescriptor) *markers {
	t.Helper()
	m := newMarkers(c)
	at, _, err := m.put(context.Background(), desc.ID, false)
	if err != nil || at == 0 {
		t.Fatal(at, err)
	}
	m.ids, m.committed = append(m.ids, desc.ID), at
	return m
}

// Goal: a live process that was struck out commits nothing that the next change, or a concurrent one, could miss: these
// wait for its looks from after the change that struck it out.
// Method: process a has a commit in flight for longer than a lease, so that it cannot acknowledge; it looks
// after the marker of a change, which then strikes it out as of the end of the lease after its marker.
// Another change closes another table, with a marker from before or after that; a tries to commit
// to that table.
func TestStruckOutWhileAlive(t *testing.T) {
	ctx := context.Background()
	for _, beside := range []bool{false, true} {
		t.Run(map[bool]string{false: "next change", true: "change beside"}[beside], func(t *testing.T) {
			db := newDB(t)
			opts := Options{Shared: true, Lease: 300 * time.Millisecond, PollInterval: time.Hour}
			a, b, c := newCatalog(t, db, opts), newCatalog(t, db, opts), newCatalog(t, db, opts)
			t0, t1, t2 := mustCreate(t, b, "t0"), mustCreate(t, b, "t1"), mustCreate(t, b, "t2")
			done := inFlight(t, a, t0)
			defer done(nil)

			first := mark(t, c, t1)
			mustLook(t, a)
			var second *markers
			if beside {
				second = mark(t, b, t2)
			}
			if err := c.strike(ctx, [][]byte{a.lease.member.key}, first.committed); err != nil {
				t.Fatal(err)
			}
			if !beside {
				second = mark(t, b, t2)
			}
			mustLook(t, c)
			if err := second.awaitMembers(ctx); err != nil {
				t.Fatal(err)
			}
			backfill := begin(t, db).StartTS()

			txn := begin(t, db)
			g := a.NewGuard()
			g.Reset(txn)
			g.Writes(t2, 1)
			if err := txn.Put([]byte("\x02k"), []byte("v")); err != nil {
				t.Fatal(err)
			}
			ts, err := g.Commit(ctx)
			var changed *SchemaChangedError
			if !errors.As(err, &changed) {
				t.Errorf("commit at %d, the backfill reads at %d: %v", ts, backfill, err)
			}
			first.open(ctx)
			second.open(ctx)
		})
	}
}

// hookedOracle calls before, unless nil, before it makes a timestamp.
type hookedOracle struct {
	tso.Oracle
	before func()
}

func (o *hookedOracle) Now(ctx context.Context) (tso.Timestamp, error) {
	if f := o.before; f != nil {
		o.before = nil
		f()
		o.before = f
	}
	return o.Oracle.Now(ctx)
}

// Goal: P1: as of a look's timestamp the process is registered, even if it is struck out right after its
// registration. Method: at each request for a timestamp, including that of the look, strike out the process if it is
// registered, three times.
func TestLooksAreThoseOfMembers(t *testing.T) {
	ctx := context.Background()
	oracle := &hookedOracle{}
	db := newDBUnder(t, func(o tso.Oracle) tso.Oracle {
		oracle.Oracle = o
		return oracle
	})
	c := newCatalog(t, db, Options{Shared: true, Lease: time.Minute, PollInterval: time.Hour})
	strikes := 0
	oracle.before = func() {
		r, err := c.lease.member.record(ctx, begin(t, db))
		if err != nil {
			t.Fatal(err)
		}
		if r != nil && r.Out == 0 && strikes < 3 {
			strikes++
			if err := c.strike(ctx, [][]byte{c.lease.member.key}, 1<<63); err != nil {
				t.Fatal(err)
			}
		}
	}
	seen := mustLook(t, c)
	oracle.before = nil
	r, err := c.lease.member.record(ctx, db.BeginAt(seen.at))
	if err != nil {
		t.Fatal(err)
	}
	if r == nil || r.Out != 0 {
		t.Errorf("no member as of its look: %+v", r)
	}
	if strikes != 3 {
		t.Errorf("struck out %d times", strikes)
	}
}

// Goal: a change waits for a member's record until nothing can be committed under a look from before the marker, and the
// record is deleted only when no look from before it was struck out is left.
func TestMemberRecords(t *testing.T) {
	const lease = 10 * time.Millisecond
	l := span(lease)
	for _, test := range []struct {
		record       memberRecord
		marker, over tso.Timestamp
	}{
		{memberRecord{}, 5 * l, 6 * l},
		{memberRecord{Seen: 5*l - 1}, 5 * l, 6 * l},
		{memberRecord{Seen: 5 * l}, 5 * l, 0},
		{memberRecord{Out: 3 * l}, 5 * l, 4 * l},
		{memberRecord{Out: 7 * l}, 5 * l, 6 * l}, // struck out by a later or concurrent change
		{memberRecord{Seen: 5 * l, Out: 7 * l}, 5 * l, 0},
	} {
		if got := test.record.over(test.marker, lease); got != test.over {
			t.Errorf("%+v, marker at %d: over at %d", test.record, test.marker, got)
		}
	}
	for at, want := range map[tso.Timestamp]bool{4 * l: false, 4*l + 1: true} {
		if got := (memberRecord{Out: 3 * l}).gone(at, lease); got != want {
			t.Errorf("as of %d: gone=%v", at, got)
		}
	}
	if (memberRecord{Seen: l}).gone(100*l, lease) {
		t.Error("gone, but never struck out")
	}
}

// Goal: a process that stops leaves the members only if all its permitted commits are decided, and permits
// none afterwards.
func TestStopLeavesWhatIsUndecided(t *testing.T) {
	ctx := context.Background()
	for name, left := range map[string]int{"decided": 0, "in flight": 1, "undetermined": 1} {
		t.Run(name, func(t *testing.T) {
			db := newDB(t)
			c, err := New(ctx, db, Options{Shared: true, Lease: time.Minute, PollInterval: time.Hour})
			if err != nil {
				t.Fatal(err)
			}
			desc := mustCreate(t, c, "t")
			done := inFlight(t, c, desc)
			switch name {
			case "decided":
				done(nil)
			case "undetermined":
				done(&percolator.UndeterminedError{})
			}
			if err := c.Close(ctx); err != nil {
				t.Fatal(err)
			}
			if got := len(records(t, db)); got != left {
				t.Errorf("%d members", got)
			}
			g := c.NewGuard()
			g.Reset(begin(t, db))
			g.Writes(desc, 1)
			if err := g.enter(ctx); !errors.Is(err, kv.ErrClosed) {
				t.Errorf("commit after the end: %v", err)
			}
		})
	}
}

// Goal: P6: a change whose commit was not answered, and is not visible in the store, may still commit, so its table
// stays closed until its marker ends; once the change is visible the table is opened.
func TestChangeWithoutAnswerStaysClosed(t *testing.T) {
	ctx := context.Background()
	for _, committed := range []bool{false, true} {
		db := newDB(t)
		c := newCatalog(t, db, Options{Shared: true})
		desc := mustCreate(t, c, "t")
		next := desc.Clone()
		next.Comment = "x"
		g := c.NewGuard()
		txn := begin(t, db)
		g.Reset(txn)
		ch, err := g.Change(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.Close(ctx, desc); err != nil {
			t.Fatal(err)
		}
		if err := ch.Update(ctx, desc, next, true); err != nil {
			t.Fatal(err)
		}
		if err = g.enter(ctx); err == nil && committed {
			_, err = txn.Commit(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		g.Done(ctx, 0, &percolator.UndeterminedError{})
		if _, closed := mustLook(t, c).closing[desc.ID]; closed == committed {
			t.Errorf("committed=%v: closed=%v", committed, closed)
		}
	}
}
