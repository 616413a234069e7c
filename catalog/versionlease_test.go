package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/readlease"
	"github.com/percodb/percodb/tso"
)

// flakyLeases loses the requests of a holder, or their answers, while broken.
type flakyLeases struct {
	readlease.Service
	broken atomic.Bool
}

func (f *flakyLeases) Renew(ctx context.Context, id string, epoch uint64, wait time.Duration) (readlease.Grant, error) {
	if f.broken.Load() && rand.IntN(2) == 0 {
		return readlease.Grant{}, errors.New("lost")
	}
	g, err := f.Service.Renew(ctx, id, epoch, wait)
	if err == nil && f.broken.Load() {
		return readlease.Grant{}, errors.New("lost")
	}
	return g, err
}

func newAuthority(t testing.TB, db *percolator.DB) *readlease.Authority {
	t.Helper()
	a, err := readlease.New(context.Background(), readlease.Options{Oracle: timestamps{db}, Lease: 100 * time.Millisecond, MaxHold: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// timestamps is the oracle of a DB.
type timestamps struct{ db *percolator.DB }

func (o timestamps) Now(ctx context.Context) (tso.Timestamp, error) { return o.db.Timestamp(ctx) }

// Goal: the schema that a process uses under a lease is the one in force as of every snapshot that it serves.
// Method: processes that create tables, and processes that read, one of which sometimes loses the answers of the
// authority; each schema is compared with the version in the store as of the same timestamp.
func TestLeasedSchemaIsInForce(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	authority := newAuthority(t, db)
	opts := func(s readlease.Service) Options {
		return Options{Shared: true, Lease: 100 * time.Millisecond, PollInterval: 25 * time.Millisecond, Leases: s}
	}
	flaky := &flakyLeases{Service: authority}
	processes := []*Catalog{newCatalog(t, db, opts(authority)), newCatalog(t, db, opts(authority)), newCatalog(t, db, opts(flaky))}
	var leased, looked, inForce, changes atomic.Int64
	enough := func() bool {
		return leased.Load() >= 100 && looked.Load() >= 10 && changes.Load() >= 10 && inForce.Load() >= 10
	}
	begun := time.Now()
	goesOn := func() bool {
		took := time.Since(begun)
		return !t.Failed() && (took < 3*time.Second || !enough() && took < time.Minute)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; goesOn(); i++ {
			mustCreate(t, processes[i%2], fmt.Sprintf("t%d", i))
			changes.Add(1)
			flaky.broken.Store(i%3 == 0)
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // changes come at random times
		}
	})
	for _, c := range processes {
		wg.Go(func() {
			for goesOn() {
				latest := c.Latest()
				txn := begin(t, db)
				if rand.IntN(4) == 0 {
					time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // some transactions are slow
				}
				if c.version.at(txn.ReadTS()) != nil {
					leased.Add(1)
				} else {
					looked.Add(1)
				}
				r, err := c.At(ctx, txn)
				if err != nil {
					t.Error(err)
					return
				}
				want, err := getNumber(ctx, txn, keyVersion)
				if err != nil || r.Version() != want {
					t.Errorf("as of %d version %d, in the store %d (%v)", txn.ReadTS(), r.Version(), want, err)
					return
				}
				if ok, err := c.InForce(ctx, latest, txn.ReadTS()); err != nil || ok && latest.Version() != want {
					t.Errorf("version %d counts as in force as of %d, in the store was %d (%v)", latest.Version(), txn.ReadTS(), want, err)
					return
				}
				txn.Close()

				latest = c.Latest()
				before, err := getNumber(ctx, db.Latest(), keyVersion)
				if err != nil {
					t.Error(err)
					return
				}
				if ok, err := c.InForce(ctx, latest, 0); err != nil || ok && latest.Version() != before {
					t.Errorf("version %d counts as in force, in the store was %d (%v)", latest.Version(), before, err)
					return
				} else if ok {
					inForce.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d changes, %d snapshots by lease, %d without, %d in force", changes.Load(), leased.Load(), looked.Load(), inForce.Load())
	if !enough() {
		t.Error("too little has happened")
	}
}

// lateLeases gets the requests to release a hold after the next hold has begun, and those of a holder
// that has no lease after the next, which it sends because the first was not answered.
type lateLeases struct {
	readlease.Service
	late []func()
}

func (l *lateLeases) arrive() {
	late := l.late
	l.late = nil
	for _, f := range late {
		f()
	}
}

func (l *lateLeases) Release(_ context.Context, owner string) error {
	l.late = append(l.late, func() { _ = l.Service.Release(context.Background(), owner) })
	return errors.New("no answer")
}

func (l *lateLeases) Hold(ctx context.Context, owner string) (tso.Timestamp, error) {
	until, err := l.Service.Hold(ctx, owner)
	l.arrive()
	return until, err
}

func (l *lateLeases) Renew(ctx context.Context, id string, epoch uint64, wait time.Duration) (readlease.Grant, error) {
	if epoch == 0 && l.late == nil {
		l.late = append(l.late, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			_, _ = l.Service.Renew(ctx, id, 0, time.Second)
		})
		return readlease.Grant{}, errors.New("no answer")
	}
	return l.Service.Renew(ctx, id, epoch, wait)
}

// Goal: a late request neither ends a hold that began after the one to which it refers, nor returns a lease that
// its process has acquired since.
func TestLateRequestsForLeases(t *testing.T) {
	ctx := context.Background()
	db := newDB(t)
	authority, err := readlease.New(ctx, readlease.Options{Oracle: timestamps{db}, Lease: 300 * time.Millisecond, MaxHold: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(350 * time.Millisecond) // for what an earlier one may have held
	late := &lateLeases{Service: authority}
	c := newCatalog(t, db, Options{})
	c.opts.Leases, c.opts.Lease = late, 300*time.Millisecond
	l := &versionLease{catalog: c, id: "p", cancel: func() {}}
	first, err := l.hold(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l.release(ctx, first)
	if _, err := l.hold(ctx); err != nil {
		t.Fatal(err)
	}
	if g, err := authority.Renew(ctx, "q", 0, time.Millisecond); err != nil || g.Until != 0 {
		t.Fatalf("a lease is granted during a hold: %+v %v", g, err)
	}
	time.Sleep(350 * time.Millisecond) // The second hold expires after MaxHold.
	if err := l.renew(ctx); err == nil {
		t.Fatal("the first request was answered")
	}
	if err := l.renew(ctx); err != nil || l.held.Load() == nil {
		t.Fatal(err)
	}
	until := l.held.Load().until
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	_, _ = authority.Hold(short, "c") // it has begun
	late.arrive()
	if _, err := authority.Hold(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if now, err := db.Timestamp(ctx); err != nil || now < until {
		t.Fatalf("a hold did not wait for a lease that is in use: %d, until %d, %v", now, until, err)
	}
}

// Goal: with a lease, transactions find their schema while the store that has it does not answer; without
// a lease they fail. Method: an authority, and a context that has ended for requests to the store.
func TestLeasedSchemaNeedsNoStore(t *testing.T) {
	db := newDB(t)
	c := newCatalog(t, db, Options{Shared: true, Lease: 100 * time.Millisecond, PollInterval: 25 * time.Millisecond, Leases: newAuthority(t, db)})
	mustCreate(t, c, "t")
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		txn := begin(t, db)
		r, err := c.At(gone, txn)
		txn.Close()
		if err == nil {
			if desc, err := r.Relation(gone, "", "t"); desc == nil || err != nil {
				t.Fatal(desc, err)
			}
			break
		}
		if time.Now().After(end) {
			t.Fatal("no lease:", err)
		}
	}
	past := db.BeginAt(1)
	defer past.Close()
	if _, err := c.At(gone, past); err == nil {
		t.Error("the lease is good for the past")
	}
}
