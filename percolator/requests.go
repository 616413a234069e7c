package percolator

import (
	"sync/atomic"

	"github.com/percodb/percodb/kv"
)

// Requests count what the statements of a transaction ask of the shards before it commits: requests that are repeated count each time. Methods of
// a nil Requests do nothing.
type Requests struct {
	Reads, ReadKeys   atomic.Int64 // for keys by name
	Scans, ScanRows   atomic.Int64 // for pages of spans, and the rows in them
	Locks, LockedKeys atomic.Int64
}

func (r *Requests) read(keys int) {
	if r != nil {
		r.Reads.Add(1)
		r.ReadKeys.Add(int64(keys))
	}
}

func (r *Requests) scan() {
	if r != nil {
		r.Scans.Add(1)
	}
}

// page counts the rows of a page that a scan has taken, those included that its shard has only counted.
func (r *Requests) page(resp *kv.ScanResponse) {
	if r != nil {
		r.ScanRows.Add(int64(len(resp.Rows)) + int64(resp.Count))
	}
}

func (r *Requests) lock(keys int) {
	if r != nil {
		r.Locks.Add(1)
		r.LockedKeys.Add(int64(keys))
	}
}

// CountRequests adds the requests from now on to r, until it is called with nil. Only the transaction's goroutine may call it.
func (t *Txn) CountRequests(r *Requests) { t.snap.requests = r }
