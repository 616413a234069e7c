package percolator

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"

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
		var value []byte
		if value, err = shard.Get(ctx, desc.Ref(), key, t.snap.readOptions()); err == nil {
			return value, nil
		}
		t.db.forgetRoute(err, desc.Ref())
	}
	return t.snap.retryGet(ctx, key, err)
}

// retryGet goes on after a first attempt that failed with err.
func (s *snapshot) retryGet(ctx context.Context, key []byte, err error) ([]byte, error) {
	bo := backoff{db: s.db}
	for {
		if err := s.retryRead(ctx, &bo, err); err != nil {
			return nil, err
		}
		var desc *kv.RangeDescriptor
		var shard kv.Shard
		if desc, shard, err = s.db.router.Locate(ctx, key); err != nil {
			continue
		}
		var value []byte
		if value, err = shard.Get(ctx, desc.Ref(), key, s.readOptions()); err == nil {
			return value, nil
		}
		s.db.forgetRoute(err, desc.Ref())
	}
}

// retryRead makes the way free for another attempt of a read that failed with err, or returns why
// there is none.
func (s *snapshot) retryRead(ctx context.Context, bo *backoff, err error) error {
	var locked *mvcc.KeyLockedError
	if errors.As(err, &locked) {
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

// fetchSome asks every shard concerned, then again for the keys whose locks have been dealt with or
// whose route was stale, until all are answered.
func (s *snapshot) fetchSome(ctx context.Context, keys [][]byte) ([][]byte, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	bo := backoff{db: s.db}
	var values [][]byte // of all keys, once not all of them came at once
	left := keys
	var at []int // positions of left in keys; nil: the same
	for {
		got, err := s.fetchOnce(ctx, left)
		if err != nil {
			return nil, err
		}
		if values == nil {
			values = got.values
		} else {
			for i, v := range got.values {
				values[at[i]] = v
			}
		}
		if len(got.again) == 0 {
			return values, nil
		}
		var nextAt []int
		var next [][]byte
		for _, i := range got.again {
			next = append(next, left[i])
			if at != nil {
				i = at[i]
			}
			nextAt = append(nextAt, i)
		}
		left, at = next, nextAt
		if err := s.clearWay(ctx, &bo, got); err != nil {
			return nil, err
		}
	}
}

// fetched is one round of answers: values by position, positions to ask again, and why.
type fetched struct {
	values [][]byte
	again  []int
	locked []mvcc.KeyLockedError
	errs   []error
}

// clearWay deals with what kept a round from answering everything.
func (s *snapshot) clearWay(ctx context.Context, bo *backoff, got *fetched) error {
	for _, err := range got.errs {
		if err := s.db.retryRouting(ctx, bo, err); err != nil {
			return err
		}
	}
	if len(got.locked) > 0 {
		return s.passLocks(ctx, bo, got.locked)
	}
	return nil
}

// fetchOnce asks each shard once, in parallel where there are several.
func (s *snapshot) fetchOnce(ctx context.Context, keys [][]byte) (*fetched, error) {
	var space [1]portion
	parts, err := s.db.portions(ctx, len(keys), func(i int) []byte { return keys[i] }, space[:])
	if err != nil {
		again := make([]int, len(keys))
		for i := range again {
			again[i] = i
		}
		return &fetched{values: make([][]byte, len(keys)), again: again, errs: []error{err}}, nil
	}
	if len(parts) == 1 {
		got := &fetched{}
		err := s.fetchPortion(ctx, &parts[0], keys, got)
		return got, err
	}
	return s.fetchParallel(ctx, parts, keys)
}

func (s *snapshot) fetchParallel(ctx context.Context, parts []portion, keys [][]byte) (*fetched, error) {
	answers := make([]fetched, len(parts))
	errs := make([]error, len(parts))
	slots := make(chan struct{}, maxFanOut)
	var wg sync.WaitGroup
	for i := range parts {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			picked := make([][]byte, len(parts[i].pick))
			for j, k := range parts[i].pick {
				picked[j] = keys[k]
			}
			errs[i] = s.fetchPortion(ctx, &parts[i], picked, &answers[i])
		})
	}
	wg.Wait()
	all := &fetched{values: make([][]byte, len(keys))}
	for i := range parts {
		if errs[i] != nil {
			return nil, errs[i]
		}
		for j, v := range answers[i].values {
			all.values[parts[i].pick[j]] = v
		}
		for _, j := range answers[i].again {
			all.again = append(all.again, parts[i].pick[j])
		}
		all.locked = append(all.locked, answers[i].locked...)
		all.errs = append(all.errs, answers[i].errs...)
	}
	slices.Sort(all.again)
	return all, nil
}

// fetchPortion asks one shard. Errors that may pass go into the answer.
func (s *snapshot) fetchPortion(ctx context.Context, p *portion, keys [][]byte, into *fetched) error {
	resp, err := p.shard.BatchGet(ctx, &kv.BatchGetRequest{Ranges: p.refs, Keys: keys, ReadOptions: s.readOptions()})
	if err != nil {
		s.db.forgetRoute(err, p.refs...)
		if mvcc.KindOf(err) != mvcc.KindStaleRoute && !unreachable(err) {
			return err
		}
		into.values = make([][]byte, len(keys))
		into.errs = append(into.errs, err)
		for i := range keys {
			into.again = append(into.again, i)
		}
		return nil
	}
	into.values = resp.Values
	into.locked = resp.Locked
	for i := range resp.Locked {
		at, found := slices.BinarySearchFunc(keys, resp.Locked[i].Key, bytes.Compare)
		if !found {
			return &kv.CorruptionError{Key: resp.Locked[i].Key, Detail: "shard reports a lock on a key it was not asked for"}
		}
		into.again = append(into.again, at)
	}
	return nil
}
