package percolator

import (
	"bytes"
	"context"
	"sort"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
)

// portion is the part of a sorted list of keys that one shard serves. pick holds the positions of its
// keys in the list, in order; nil means all of them.
type portion struct {
	name  string
	shard kv.Shard
	refs  []kv.RangeRef
	pick  []int
}

// portions splits n ascending keys by shard. The result uses dst's storage.
func (db *DB) portions(ctx context.Context, n int, key func(int) []byte, dst []portion) ([]portion, error) {
	dst = dst[:0]
	for i := 0; i < n; {
		desc, shard, err := db.router.Locate(ctx, key(i))
		if err != nil {
			return nil, err
		}
		end := rangeEnd(desc, i, n, key)
		at := -1
		for j := range dst {
			if dst[j].name == desc.Shard {
				at = j
			}
		}
		if at < 0 {
			dst = append(dst, portion{name: desc.Shard, shard: shard})
			at = len(dst) - 1
		}
		p := &dst[at]
		p.refs = append(p.refs, desc.Ref())
		if i > 0 || end < n { // several portions, or several ranges of one
			for ; i < end; i++ {
				p.pick = append(p.pick, i)
			}
		}
		i = end
	}
	if len(dst) == 1 {
		dst[0].pick = nil
	}
	return dst, nil
}

// rangeEnd returns the position of the first key from i on that lies beyond the range.
func rangeEnd(desc *kv.RangeDescriptor, i, n int, key func(int) []byte) int {
	end := desc.Span.End
	if len(end) == 0 || bytes.Compare(key(n-1), end) < 0 {
		return n
	}
	return i + 1 + sort.Search(n-i-1, func(j int) bool { return bytes.Compare(key(i+1+j), end) >= 0 })
}

// retryRouting handles errors after which the request can be repeated because nothing was done or a repetition is
// harmless: it refreshes the route or waits. It returns other errors.
func (db *DB) retryRouting(ctx context.Context, bo *backoff, err error) error {
	switch errkind.Of(err).Retry() {
	case errkind.RetryRoute:
		if stale, ok := errkind.As[*kv.StaleRangeError](err); ok {
			db.router.Invalidate(stale)
		}
		return bo.wait(ctx, backoffRoute, err)
	case errkind.RetryShard:
		return bo.wait(ctx, backoffRPC, err)
	case errkind.RetryOracle:
		return bo.wait(ctx, backoffOracle, err)
	default:
		return err
	}
}

// forgetRoute drops the cached routes of ranges whose shard did not answer: it may have ended, or have another address.
func (db *DB) forgetRoute(err error, refs ...kv.RangeRef) {
	if errkind.Of(err) == errkind.Unavailable {
		db.router.Invalidate(&kv.StaleRangeError{Refs: refs})
	}
}

// notSent reports whether err prevented a request from leaving this process.
func notSent(err error) bool {
	unavailable, ok := errkind.As[*kv.UnavailableError](err)
	return ok && unavailable.NotSent
}

// unreachable reports whether err means that a node did not answer.
func unreachable(err error) bool {
	retry := errkind.Of(err).Retry()
	return retry == errkind.RetryShard || retry == errkind.RetryOracle
}
