package percolator

import (
	"fmt"
	"testing"
)

// BenchmarkRequests measures what a transaction layer adds to requests for several keys, on one store and on two.
func BenchmarkRequests(b *testing.B) {
	for _, bounds := range [][]string{nil, {"key0500"}} {
		c := newCluster(b, nil, bounds...)
		db := c.db(Options{DisableAsyncCommit: true}, nil)
		base := mustBegin(b, db)
		for i := range 1000 {
			mustPut(b, base, fmt.Sprintf("key%04d=value", i))
		}
		mustCommit(b, base)
		keys := func(n int) (out [][]byte) {
			for i := range n {
				out = append(out, fmt.Appendf(nil, "key%04d", i*1000/n))
			}
			return out
		}
		for _, n := range []int{4, 100} {
			wanted := keys(n)
			b.Run(fmt.Sprintf("stores=%d/BatchGet/%d", len(bounds)+1, n), func(b *testing.B) {
				txn := mustBegin(b, db)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := txn.BatchGet(b.Context(), wanted); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("stores=%d/Commit/4", len(bounds)+1), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				txn := mustBegin(b, db)
				for _, key := range keys(4) {
					if err := txn.Put(key, []byte("value")); err != nil {
						b.Fatal(err)
					}
				}
				mustCommit(b, txn)
			}
			db.waitIdle()
		})
	}
}
