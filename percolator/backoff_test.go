package percolator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Goal: a call retries unreachable nodes for its budget and no longer; one whose outcome depends on them for the budget
// of the whole call.
func TestBudgetForUnreachableNodes(t *testing.T) {
	for _, class := range []backoffClass{backoffRPC, backoffOracle} {
		for _, patient := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m, err := newMetrics(nil, func() float64 { return 0 })
				if err != nil {
					t.Fatal(err)
				}
				db := &DB{opts: Options{}.ensureDefaults(), metrics: m}
				b, cause, began := backoff{db: db, patient: patient}, &kv.UnavailableError{Shard: "s"}, time.Now()
				for err == nil {
					err = b.wait(context.Background(), class, cause)
				}
				took := time.Since(began)
				if patient && (took > db.opts.RetryBudget || took < db.opts.RetryBudget-2*time.Second) || !patient && took != db.opts.UnreachableBudget {
					t.Errorf("class %d, patient %v: gave up after %v", class, patient, took)
				}
				if !errors.Is(err, cause) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// Goal: the time that a request itself was without an answer counts, also if it is longer than the budget: a call does not begin its budget anew with
// each such request. One slow failure has the request sent again; an oracle's client has repeated it already. Method: a fake clock, requests that
// take long to fail.
func TestBudgetCountsSlowRequests(t *testing.T) {
	const slow = 6 * time.Second
	for class, c := range map[backoffClass]struct {
		cause    error
		attempts int
	}{
		backoffRPC:    {&kv.UnavailableError{Shard: "s", Tried: slow}, 2},
		backoffOracle: {&tso.UnavailableError{Tried: slow}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, err := newMetrics(nil, func() float64 { return 0 })
			if err != nil {
				t.Fatal(err)
			}
			db := &DB{opts: Options{}.ensureDefaults(), metrics: m}
			b, began, attempts := backoff{db: db}, time.Now(), 0
			for err == nil {
				time.Sleep(slow) // The request takes so long, by the fake clock.
				attempts++
				err = b.wait(context.Background(), class, c.cause)
			}
			if took := time.Since(began); attempts != c.attempts || took != time.Duration(c.attempts)*slow || !errors.Is(err, c.cause) {
				t.Errorf("class %d: %v after %d attempts and %v", class, err, attempts, took)
			}
		})
	}
}
