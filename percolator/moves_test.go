package percolator

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/percodb/percodb/tso"
)

// Goal: each key of a read committed transaction is checked as of the snapshot of its first write, whatever was rolled
// back in between. Method: random writes, statements and savepoints, against a list of the writes and their snapshots.
func TestKeysAreCheckedSinceTheirFirstWrite(t *testing.T) {
	type written struct {
		key string
		at  tso.Timestamp
	}
	rng := rand.New(rand.NewPCG(8, 1))
	db := newCluster(t, nil).db(Options{}, nil)
	for range 200 {
		txn := mustBeginTxn(t, db, TxnOptions{Isolation: ReadCommitted})
		var log []written
		type save struct {
			sp Savepoint
			n  int
		}
		var saves []save
		for range 1 + rng.IntN(60) {
			switch rng.IntN(6) {
			case 0, 1:
				if err := txn.BeginStatement(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 2:
				saves = append(saves, save{txn.Savepoint(), len(log)})
			case 3:
				if len(saves) > 0 {
					i := rng.IntN(len(saves))
					txn.RollbackTo(saves[i].sp)
					saves, log = saves[:i+1], log[:saves[i].n]
				}
			default:
				key := fmt.Sprintf("k%d", rng.IntN(10))
				mustPut(t, txn, key+"=v")
				log = append(log, written{key, txn.ReadTS()})
			}
		}
		want := map[string]tso.Timestamp{}
		for _, w := range log {
			if _, seen := want[w.key]; !seen {
				want[w.key] = w.at
			}
		}
		if txn.buf.len() > 0 {
			c := committer{db: db, startTS: txn.StartTS(), readTS: txn.ReadTS()}
			if _, err := c.prepare(txn); err != nil {
				t.Fatal(err)
			}
			if len(c.mutations) != len(want) {
				t.Fatalf("%d keys of %d", len(c.mutations), len(want))
			}
			for _, m := range c.mutations {
				at := m.LockedAt
				if at == 0 {
					at = c.readTS
				}
				if at != want[string(m.Key)] {
					t.Fatalf("%s is checked as of %d, was written at %d", m.Key, at, want[string(m.Key)])
				}
			}
		}
		if err := txn.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: what a read committed transaction records about its snapshots is bounded by its writes, and its commit is not
// quadratic in its statements. Method: many statements; a quadratic commit takes minutes.
func TestManyStatementsOfReadCommitted(t *testing.T) {
	const statements = 30_000
	db := newCluster(t, nil).db(Options{}, nil)
	txn := mustBeginTxn(t, db, TxnOptions{Isolation: ReadCommitted})
	for i := range statements {
		if err := txn.BeginStatement(t.Context()); err != nil {
			t.Fatal(err)
		}
		switch {
		case i%3 == 0:
			mustPut(t, txn, fmt.Sprintf("k%06d=v", i*7919%statements))
		case i%100 == 1:
			txn.RollbackTo(txn.Savepoint())
		}
	}
	if got := len(txn.buf.moves); got > statements/3 {
		t.Fatalf("%d moves are kept for %d writes", got, statements/3)
	}
	began := time.Now()
	c := committer{db: db, startTS: txn.StartTS(), readTS: txn.ReadTS()}
	if _, err := c.prepare(txn); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Fatalf("preparing the commit took %v", took)
	}
	mustCommit(t, txn)
}
