package percolator

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// Get implements Reader.
func (t *Txn) Get(ctx context.Context, key []byte) ([]byte, error) {
	if t.done {
		return nil, ErrTxnDone
	}
	if t.buf.len() > 0 {
		if value, found, err := t.buf.get(key); found || err != nil {
			return value, err
		}
	}
	if t.reads != nil {
		t.reads.addPoint(key)
	}
	desc, shard, err := t.db.router.Locate(ctx, key)
	if err == nil {
		t.snap.requests.read(1)
		var value []byte
		if value, err = shard.Get(ctx, desc.Ref(), key, t.snap.readOptions()); err == nil {
			return value, nil
		}
		t.db.forgetRoute(err, desc.Ref())
	}
	return t.snap.retryGet(ctx, key, err)
}

// retryGet continues after a first attempt that failed with err.
func (s *snapshot) retryGet(ctx context.Context, key []byte, err error) ([]byte, error) {
	bo := backoff{db: s.db}
	for {
		if err := s.retryRead(ctx, &bo, err); err != nil {
			return nil, err
		}
		var value []byte
		err = s.db.onKey(ctx, key, func(ref kv.RangeRef, shard kv.Shard) (err error) {
			s.requests.read(1)
			value, err = shard.Get(ctx, ref, key, s.readOptions())
			return err
		})
		if err == nil {
			return value, nil
		}
	}
}

// retryRead makes the way free for another attempt of a read that failed with err, or returns why
// there is none.
func (s *snapshot) retryRead(ctx context.Context, bo *backoff, err error) error {
	if locked, ok := errkind.As[*mvcc.KeyLockedError](err); ok {
		return s.passLocks(ctx, bo, []mvcc.KeyLockedError{*locked})
	}
	return s.db.retryRouting(ctx, bo, err)
}

// BatchGet implements Reader.
func (t *Txn) BatchGet(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if t.done {
		return nil, ErrTxnDone
	}
	if t.buf.len() == 0 && strictlyAscending(keys) {
		t.notePoints(keys)
		return t.snap.fetch(ctx, keys)
	}
	values := make([][]byte, len(keys))
	var missing []int
	for i, key := range keys {
		if t.buf.len() > 0 {
			value, found, err := t.buf.get(key)
			if err != nil {
				return nil, err
			}
			if found {
				values[i] = value
				continue
			}
		}
		missing = append(missing, i)
	}
	if len(missing) == 0 {
		return values, nil
	}
	slices.SortFunc(missing, func(i, j int) int { return bytes.Compare(keys[i], keys[j]) })
	sorted := make([][]byte, 0, len(missing))
	for _, i := range missing {
		if n := len(sorted); n == 0 || !bytes.Equal(sorted[n-1], keys[i]) {
			sorted = append(sorted, keys[i])
		}
	}
	t.notePoints(sorted)
	fetched, err := t.snap.fetch(ctx, sorted)
	if err != nil {
		return nil, err
	}
	j := 0
	for _, i := range missing {
		if !bytes.Equal(sorted[j], keys[i]) {
			j++
		}
		values[i] = fetched[j]
	}
	return values, nil
}

func (t *Txn) notePoints(keys [][]byte) {
	if t.reads == nil {
		return
	}
	for _, key := range keys {
		t.reads.addPoint(key)
	}
}

func strictlyAscending(keys [][]byte) bool {
	for i := 1; i < len(keys); i++ {
		if bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return false
		}
	}
	return true
}

// maxBatchKeys bounds one BatchGet request.
const maxBatchKeys = 4096

// maxFanOut bounds the requests one transaction has in flight.
const maxFanOut = 16

// fetch reads ascending keys from the shards.
func (s *snapshot) fetch(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if len(keys) <= maxBatchKeys {
		return s.fetchSome(ctx, keys)
	}
	values := make([][]byte, 0, len(keys))
	for some := range slices.Chunk(keys, maxBatchKeys) {
		v, err := s.fetchSome(ctx, some)
		if err != nil {
			return nil, err
		}
		values = append(values, v...)
	}
	return values, nil
}

// fetchSome reads from every shard, in parallel if there are several, and then again the keys whose locks have been
// resolved, until all are answered.
func (s *snapshot) fetchSome(ctx context.Context, keys [][]byte) ([][]byte, error) {
	f := batchFetch{s: s, keys: keys}
	all := shardRequest[[]byte]{bo: backoff{db: s.db}, list: &keyList, fanOut: maxFanOut, send: f.send}
	for left := keys; len(left) > 0; {
		f.locked = nil
		if err := all.run(ctx, left); err != nil {
			return nil, err
		}
		if len(f.locked) == 0 {
			break
		}
		if err := s.passLocks(ctx, &all.bo, f.locked); err != nil {
			return nil, err
		}
		left = make([][]byte, len(f.locked))
		for i := range f.locked {
			left[i] = f.locked[i].Key
		}
		slices.SortFunc(left, bytes.Compare)
	}
	return f.values, nil
}

// batchFetch collects the answers of several shards about ascending keys.
type batchFetch struct {
	s    *snapshot
	keys [][]byte

	mu     sync.Mutex
	values [][]byte // of keys; nil before the first answer
	locked []mvcc.KeyLockedError
}

// send reads from one shard.
func (f *batchFetch) send(ctx context.Context, _ *backoff, p *part[[]byte]) error {
	f.s.requests.read(len(p.items))
	resp, err := p.shard.BatchGet(ctx, &kv.BatchGetRequest{Ranges: p.refs, Keys: p.items, ReadOptions: f.s.readOptions()})
	if err != nil {
		return err
	}
	for i := range resp.Locked {
		if _, found := slices.BinarySearchFunc(p.items, resp.Locked[i].Key, bytes.Compare); !found {
			return &kv.CorruptionError{Key: resp.Locked[i].Key, Detail: "shard reports a lock on a key it was not asked for"}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.locked = append(f.locked, resp.Locked...)
	if f.values == nil && len(p.items) == len(f.keys) {
		f.values = resp.Values
		return nil
	}
	if f.values == nil {
		f.values = make([][]byte, len(f.keys))
	}
	for i, key := range p.items {
		at, _ := slices.BinarySearchFunc(f.keys, key, bytes.Compare)
		f.values[at] = resp.Values[i]
	}
	return nil
}
