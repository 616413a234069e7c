package percolator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/percodb/percodb/kv"
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
