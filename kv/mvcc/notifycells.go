package mvcc

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// observerLen is the length of an observer's number in a stored key.
const observerLen = 8

// appendNotifyKey appends the stored key of an observer's cell of key. Cells are ordered by observer first: the cells of
// one that does not work are not in the way of the others, and to find that one has none is a single seek.
func appendNotifyKey(dst []byte, observer uint64, key []byte) []byte {
	dst = append(dst, tagNotify)
	dst = binary.BigEndian.AppendUint64(dst, observer)
	dst = append(dst, key...)
	return storage.AppendSentinel(dst)
}

// appendNotifyUpper appends the bound above an observer's cells of keys below end; an empty end bounds all of its cells.
func appendNotifyUpper(dst []byte, observer uint64, end []byte) []byte {
	switch {
	case len(end) > 0:
		return appendNotifyKey(dst, observer, end)
	case observer == math.MaxUint64:
		return appendUpper(dst, tagNotify, nil)
	default:
		return appendNotifyKey(dst, observer+1, nil)
	}
}

// splitNotifyKey returns the observer and the key of a stored key in the keyspace of cells.
func splitNotifyKey(stored []byte) (observer uint64, key []byte, err error) {
	inner := userKey(stored)
	if len(inner) < observerLen {
		return 0, nil, corrupt(stored, "stored key of a notify cell")
	}
	return binary.BigEndian.Uint64(inner), inner[observerLen:], nil
}

// readCell returns the cell with a stored key, by an iterator for points: cells that were cleared cost it nothing.
func readCell(it *storage.Iterator, stored []byte) (notifyCell, error) {
	if !it.SeekPrefixGE(stored) {
		return notifyCell{}, it.Error()
	}
	return currentCell(it)
}

// currentCell returns the cell at which it stands.
func currentCell(it *storage.Iterator) (notifyCell, error) {
	value, err := it.Value()
	if err != nil {
		return notifyCell{}, err
	}
	c, err := decodeNotifyCell(value)
	if err != nil {
		return notifyCell{}, &CorruptionError{Key: bytes.Clone(it.Key()), Detail: "notify cell", Err: err}
	}
	return c, nil
}

// putCells writes the cells of a commit of key, which is latched.
func (w *writer) putCells(b *storage.Batch, key []byte, set *NotifySet, commitTS tso.Timestamp) error {
	if set == nil {
		return nil
	}
	// No commit of the key is newer; a NotifyPut may be.
	ahead := uint64(commitTS) <= w.s.maxNotifyPutTS.Load()
	for _, observer := range set.Observers {
		c := notifyCell{latest: commitTS, hop: set.Hop}
		if ahead {
			old, err := w.cell(observer, key)
			if err != nil {
				return err
			}
			c = decideNotify(old, commitTS, set.Hop)
		}
		w.putCell(b, observer, key, c)
	}
	return nil
}

// cell reads a cell.
func (w *writer) cell(observer uint64, key []byte) (notifyCell, error) {
	it, err := w.s.eng.NewPointIter(storage.PointRead)
	if err != nil {
		return notifyCell{}, err
	}
	defer it.Close()
	w.key = appendNotifyKey(w.key[:0], observer, key)
	return readCell(it, w.key)
}

func (w *writer) putCell(b *storage.Batch, observer uint64, key []byte, c notifyCell) {
	w.key = appendNotifyKey(w.key[:0], observer, key)
	w.value = appendNotifyCell(w.value[:0], c)
	b.Put(w.key, w.value)
}

// NotifyScan returns up to limit cells of an observer in [start, end). A page ends early when its keys have maxBytes. It waits until the
// commits that wrote the cells are durable: a cell that was seen tells of a change that no crash takes back.
func (s *State) NotifyScan(ctx context.Context, start, end []byte, observer uint64, limit, maxBytes int) (p NotifyPage, err error) {
	if limit <= 0 || observer == 0 {
		return p, &InvalidRequestError{Detail: fmt.Sprintf("scan for %d cells of observer %d", limit, observer)}
	}
	if len(end) == len(start)+1 && end[len(start)] == 0 && bytes.HasPrefix(end, start) {
		p, err = s.notifyGet(start, observer)
	} else {
		p, err = s.notifyPage(ctx, start, end, observer, limit, maxBytes)
	}
	if err == nil {
		err = s.awaitCells(ctx, p.Cells)
	}
	return p, err
}

// awaitCells waits until cells that were read are durable: the batch that writes one has an entry for its key in the lock table until
// then.
func (s *State) awaitCells(ctx context.Context, cells []NotifyCell) error {
	if s.locks.blocking.Load() == 0 {
		return nil
	}
	for i := range cells {
		if wait := s.locks.waitChan(cells[i].Key); wait != nil {
			if err := s.wait(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

// notifyPage reads the cells of NotifyScan.
func (s *State) notifyPage(ctx context.Context, start, end []byte, observer uint64, limit, maxBytes int) (p NotifyPage, err error) {
	it, err := s.eng.NewRangeIter(appendNotifyKey(nil, observer, start), appendNotifyUpper(nil, observer, end))
	if err != nil {
		return p, err
	}
	defer it.Close()
	size, before := 0, it.Steps()
	for ok := it.First(); ok; ok = it.Next() {
		_, key, err := splitNotifyKey(it.Key())
		if err != nil {
			return p, err
		}
		if len(p.Cells) >= limit || size >= maxBytes {
			p.ResumeKey = bytes.Clone(key)
			break
		}
		c, err := currentCell(it)
		if err != nil {
			return p, err
		}
		p.Cells = append(p.Cells, NotifyCell{Key: bytes.Clone(key), Latest: c.latest, Hop: c.hop})
		size += len(key)
		if len(p.Cells)%chunk == 0 && ctx.Err() != nil {
			return p, ctx.Err()
		}
	}
	p.Passed = max(0, it.Steps()-before-len(p.Cells))
	return p, it.Error()
}

// notifyGet is notifyPage of one key.
func (s *State) notifyGet(key []byte, observer uint64) (p NotifyPage, err error) {
	it, err := s.eng.NewPointIter(storage.PointRead)
	if err != nil {
		return p, err
	}
	defer it.Close()
	c, err := readCell(it, appendNotifyKey(nil, observer, key))
	if err == nil && c.latest != 0 {
		p.Cells = []NotifyCell{{Key: bytes.Clone(key), Latest: c.latest, Hop: c.hop}}
	}
	return p, err
}

// NotifyClear removes those of an observer's cells that are not newer than given, and returns how many. The removal is
// not durable: after a crash the cells may be there again.
func (s *State) NotifyClear(adm Admission, observer uint64, cells []NotifyUpTo) (cleared int, err error) {
	if err := validateUpTo(observer, cells); err != nil {
		return 0, err
	}
	w := s.newWriter()
	defer w.release()
	w.latchCells(cells)
	defer w.unlatch()
	if err := adm.Admit(); err != nil {
		return 0, err
	}
	// A large commit ingests its cells without latches. Therefore it is looked for before the cells are read: what it
	// ingests before it leaves the table is read then.
	large := make([]bool, len(cells))
	for i := range cells {
		large[i] = s.locks.largeWriter(cells[i].Key, 0) != nil
	}
	it, err := s.eng.NewPointIter(storage.PointRead)
	if err != nil {
		return 0, err
	}
	defer it.Close()
	b := s.eng.NewBatch(0)
	defer b.Close()
	for i := range cells {
		w.key = appendNotifyKey(w.key[:0], observer, cells[i].Key)
		c, err := readCell(it, w.key)
		if err != nil {
			return 0, err
		}
		if decideClear(c, cells[i].UpTo, large[i]) {
			b.Delete(w.key)
			cleared++
		}
	}
	return cleared, s.apply(b, storage.NoSync)
}

func (w *writer) latchCells(cells []NotifyUpTo) {
	for i := range cells {
		w.s.latches.add(&w.held, cells[i].Key)
	}
	w.s.latches.lock(&w.held)
}

// NotifyPut raises an observer's cells of keys to ts, durably.
func (s *State) NotifyPut(ctx context.Context, adm Admission, observer uint64, keys [][]byte, ts tso.Timestamp, hop uint8) error {
	if err := validateKeys(keys); err != nil {
		return err
	}
	if observer == 0 || ts == 0 || ts == tso.MaxTimestamp {
		return &InvalidRequestError{Detail: fmt.Sprintf("notification of observer %d at %d", observer, ts)}
	}
	// Later transactions commit above ts, among them large commits, which do not look at the cells that they replace.
	if err := s.BeginRead(ctx, ts); err != nil {
		return err
	}
	w := s.newWriter()
	defer w.release()
	for {
		wait, err := w.notifyPut(adm, observer, keys, ts, hop)
		if wait == nil {
			return err
		}
		if err := s.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// notifyPut is one attempt. A non-nil channel means: nothing was done; try again when it is closed.
func (w *writer) notifyPut(adm Admission, observer uint64, keys [][]byte, ts tso.Timestamp, hop uint8) (<-chan struct{}, error) {
	s := w.s
	w.latchKeys(keys)
	b := s.eng.NewBatch(0)
	defer b.Close()
	wait, err := w.raiseCells(b, adm, observer, keys, ts, hop)
	if err != nil || wait != nil {
		w.unlatch()
		return wait, err
	}
	raise(&s.maxNotifyPutTS, ts)
	err = s.apply(b, storage.Sync)
	w.unlatch()
	if err == nil {
		err = b.SyncWait()
	}
	if err == nil {
		s.hintKeys(observer, keys, ts)
	}
	return nil, err
}

// raiseCells collects the changes of notifyPut. Cells that are ahead are written again: they may not be durable.
func (w *writer) raiseCells(b *storage.Batch, adm Admission, observer uint64, keys [][]byte, ts tso.Timestamp, hop uint8) (wait <-chan struct{}, err error) {
	if err := adm.Admit(); err != nil {
		return nil, err
	}
	for _, key := range keys { // before the cells are read, as in NotifyClear
		if c := w.s.locks.largeWriter(key, 0); c != nil {
			return c.done, nil
		}
	}
	it, err := w.s.eng.NewPointIter(storage.PointRead)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	for _, key := range keys {
		w.key = appendNotifyKey(w.key[:0], observer, key)
		old, err := readCell(it, w.key)
		if err != nil {
			return nil, err
		}
		w.putCell(b, observer, key, decideNotify(old, ts, hop))
	}
	return nil, nil
}

// NotifyDrop removes an observer's cells of [start, end) by range deletion, durably.
func (s *State) NotifyDrop(start, end []byte, observer uint64) error {
	if observer == 0 {
		return &InvalidRequestError{Detail: "drop of the cells of no observer"}
	}
	b := s.eng.NewBatch(0)
	defer b.Close()
	b.DeleteRange(appendNotifyKey(nil, observer, start), appendNotifyUpper(nil, observer, end))
	if err := s.apply(b, storage.Sync); err != nil {
		return err
	}
	return b.SyncWait()
}

// notifiedIn returns the observers that have cells in [start, end). It costs two seeks for each observer that has cells
// anywhere.
func (s *State) notifiedIn(start, end []byte) (observers []uint64, err error) {
	it, err := s.eng.NewRangeIter(NotifyBounds())
	if err != nil {
		return nil, err
	}
	defer it.Close()
	ok := it.First()
	for ok {
		observer, _, err := splitNotifyKey(it.Key())
		if err != nil {
			return nil, err
		}
		if ok = it.SeekGE(appendNotifyKey(nil, observer, start)); !ok {
			break
		}
		if storage.Compare(it.Key(), appendNotifyUpper(nil, observer, end)) < 0 {
			observers = append(observers, observer)
		}
		ok = it.SeekGE(appendNotifyUpper(nil, observer, nil))
	}
	return observers, it.Error()
}

// NotifyBounds returns the bounds of the stored cells of all observers.
func NotifyBounds() (lower, upper []byte) {
	return storage.AppendSentinel([]byte{tagNotify}), appendUpper(nil, tagNotify, nil)
}
