package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Bounds of one page of collection, and of one batch of removals within it.
const (
	gcPageKeys     = 2048
	gcBatchRecords = 256
)

// collector visits one page of a pass and removes versions and records that cannot be read any more. It acquires no
// latches: records at or below the safe point are not written, and of a key's versions only the newest matters to
// writers, which are above the safe point and treat a deletion like an absent key.
type collector struct {
	s     *State
	pass  gcPass
	stats *GCStats
	pause func() error

	it, look *storage.Iterator
	b        *storage.Batch
	removals int // in b
	key      []byte
	stored   []byte
}

func (c *collector) close() {
	for _, it := range []*storage.Iterator{c.it, c.look} {
		if it != nil {
			it.Close()
		}
	}
	if c.b != nil {
		c.b.Close()
	}
}

func (c *collector) page() error {
	if c.pass.tag == tagStatus {
		return c.statusPage()
	}
	return c.writePage()
}

// writePage visits up to gcPageKeys keys that have a version in (done, target].
func (c *collector) writePage() (err error) {
	from, to := uint64(c.pass.from)+1, uint64(c.pass.target)
	lower, upper := WriteBounds(c.pass.resume, nil)
	if c.it, err = c.s.eng.NewVersionIter(lower, upper, from, to+1); err != nil {
		return err
	}
	if c.look, err = c.s.eng.NewRangeIter(lower, upper); err != nil {
		return err
	}
	ok := c.it.First()
	for seen := 0; ok; {
		prefix, version, isVersion := storage.SplitVersion(c.it.Key())
		if !isVersion {
			return corrupt(c.it.Key(), "unversioned key among the write records")
		}
		if version > to { // go on at the newest one of the window, or at the next key
			c.stored = storage.AppendVersion(append(c.stored[:0], prefix...), to)
			ok = c.it.SeekGE(c.stored)
			continue
		}
		if version < from {
			ok = c.it.NextPrefix()
			continue
		}
		c.key = append(c.key[:0], prefix...)
		if seen == gcPageKeys {
			c.pass.resume = bytes.Clone(userKey(c.key))
			return c.flush()
		}
		seen++
		c.stats.Keys++
		if err := c.visit(version); err != nil {
			return err
		}
		ok = c.it.NextPrefix()
	}
	if err := c.it.Error(); err != nil {
		return err
	}
	c.pass.tag, c.pass.resume = tagStatus, nil
	return c.flush()
}

// visit collects the key c.key, whose newest version at or below the safe point is pivot, the current position of c.it.
// A deletion is removed after everything that it hides: a crash in between must not make that visible again.
func (c *collector) visit(pivot uint64) error {
	w, err := writeAt(c.it, userKey(c.key), pivot)
	if err != nil {
		return err
	}
	deletion := w.op == OpDelete
	if pivot > 0 {
		c.stored = storage.AppendVersion(append(c.stored[:0], c.key...), pivot-1)
		for ok := c.look.SeekGE(c.stored); ok; ok = c.look.Next() {
			prefix, version, _ := storage.SplitVersion(c.look.Key())
			if !bytes.Equal(prefix, c.key) {
				break
			}
			if err := c.removeVersion(version); err != nil {
				return err
			}
		}
		if err := c.look.Error(); err != nil {
			return err
		}
	}
	if !deletion {
		return nil
	}
	c.keepStub(&w)
	c.stored = storage.AppendVersion(append(c.stored[:0], c.key...), pivot)
	c.stats.Versions++
	return c.remove(c.stored)
}

// keepStub keeps the record that determines the outcome of the transaction of a version of c.key that is removed in the
// same batch, if that is necessary.
func (c *collector) keepStub(w *writeRecord) {
	if keepForAbsent(w.startTS, c.pass.kept) {
		c.stored = c.s.putStub(c.batch(), c.stored[:0], userKey(c.key), w)
		c.removals++
		c.stats.Kept++
	}
}

// removeVersion removes the current version of c.look, with its value.
func (c *collector) removeVersion(version uint64) error {
	w, err := writeAt(c.look, userKey(c.key), version)
	if err != nil {
		return err
	}
	c.stats.Versions++
	c.keepStub(&w)
	if w.longValue {
		c.stored = appendVersioned(c.stored[:0], tagData, userKey(c.key), w.startTS)
		c.batch().Delete(c.stored) // in one batch with its version
		c.removals++
	}
	return c.remove(c.look.Key())
}

// statusPage removes status records at or below the target.
func (c *collector) statusPage() (err error) {
	to := uint64(c.pass.target)
	lower, upper := appendPrefix(nil, tagStatus, c.pass.resume), appendUpper(nil, tagStatus, nil)
	if c.it, err = c.s.eng.NewVersionIter(lower, upper, 0, to+1); err != nil {
		return err
	}
	seen := 0
	for ok := c.it.First(); ok; ok = c.it.Next() {
		prefix, version, isVersion := storage.SplitVersion(c.it.Key())
		if !isVersion {
			return corrupt(c.it.Key(), "unversioned key among the status records")
		}
		if version > to {
			continue
		}
		if seen >= gcPageKeys && !bytes.Equal(prefix, c.key) { // a page ends between keys
			c.pass.resume = bytes.Clone(userKey(prefix))
			return c.flush()
		}
		c.key = append(c.key[:0], prefix...)
		seen++
		if kept, err := c.keepsStatus(); kept || err != nil {
			if err != nil {
				return err
			}
			c.stats.Kept++
			continue
		}
		if holder := c.s.locks.startTS(userKey(prefix)); holder != 0 && holder <= tso.Timestamp(to) {
			continue // the transaction is not finished here; the caller's vow was broken, so keep it
		}
		c.stats.Statuses++
		if err := c.remove(c.it.Key()); err != nil {
			return err
		}
	}
	if err := c.it.Error(); err != nil {
		return err
	}
	c.pass = gcPass{done: c.pass.target, from: c.pass.target, kept: c.pass.kept}
	return c.flush()
}

// keepsStatus reports whether the current status record of c.it has to be kept.
func (c *collector) keepsStatus() (bool, error) {
	if len(c.pass.kept) == 0 {
		return false, nil
	}
	value, err := c.it.Value()
	if err != nil {
		return false, err
	}
	_, startTS, err := decodeStatus(value)
	if err != nil {
		return false, &CorruptionError{Key: bytes.Clone(userKey(c.key)), Detail: "status record", Err: err}
	}
	return !isUse(startTS) && keepForAbsent(startTS, c.pass.kept), nil
}

// remove removes a stored key. When the batch is full it is applied, without recording progress, because the key may not
// be finished.
func (c *collector) remove(stored []byte) error {
	c.batch().Delete(stored)
	if c.removals++; c.removals < gcBatchRecords {
		return nil
	}
	return c.apply()
}

func (c *collector) batch() *storage.Batch {
	if c.b == nil {
		c.b = c.s.eng.NewBatch(0)
	}
	return c.b
}

// flush applies the rest, and records the progress of the pass.
func (c *collector) flush() error {
	c.batch().Put(c.s.opts.CollectedKey, appendPass(nil, &c.pass))
	if err := c.apply(); err != nil {
		return err
	}
	c.s.gc.pass = c.pass
	return nil
}

func (c *collector) apply() error {
	c.stats.Bytes += c.b.Len()
	err := c.s.eng.Apply(c.b, storage.NoSync)
	c.b.Close()
	c.b, c.removals = nil, 0
	if err == nil && c.pause != nil {
		err = c.pause()
	}
	return err
}
