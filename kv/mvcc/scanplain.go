package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// plain reports whether visitPlain may take over from forward: the page is past what scans do at the beginning of a page or of a span,
// and no lock is in the way.
func (sc *scanner) plain() bool {
	return sc.args.Visit != nil && sc.rows > closeRows+1 && len(sc.conflicts) == 0 && sc.at >= len(sc.spans)-1 && !sc.run.open &&
		sc.known == nil && sc.bytes < sc.args.MaxBytes && sc.rows+len(sc.page.Locked) < sc.args.Limit
}

// plainDeleted is how many deleted keys in a row visitPlain passes: forward may jump over more of them.
const plainDeleted = 4

// visitPlain does for most rows what forward does for all of them: it passes rows to Visit as long as the iterator comes to the newest
// version of a key, which is visible and has its value in its record, or to an older one. It stops at an entry that is anything
// else, or where the page is full, for forward to decide; ok is false at the end. The key of the last row is in sc.lastKey.
func (sc *scanner) visitPlain() (ok bool) {
	it, visit, last := sc.it, sc.args.Visit, sc.lastKey
	pair := visit.Pair
	readTS, keysOnly, limit := uint64(sc.args.ReadTS), sc.args.KeysOnly, sc.args.Limit-len(sc.page.Locked)
	first := sc.rows
	rows, deleted := first, 0
	older, olderAt := 0, -expectOlder // rows from here on that are expected to have older versions; the last one that had
	bound, fill, most := sc.blocks.bound, sc.blocks.fill, sc.s.scans.rows
	for ok = true; ok; {
		prefix, version, isVersion := storage.SplitVersion(it.Key())
		if !isVersion || version > readTS {
			break
		}
		key := userKey(prefix)
		if bytes.Equal(key, last) {
			if rows-olderAt <= 2 {
				older = expectOlder
			}
			olderAt, ok = rows, it.NextPrefix()
			continue
		}
		if bound != nil && bytes.Compare(key, bound) >= 0 {
			break
		}
		record, err := it.Value()
		if err != nil {
			break
		}
		op, long, value, err := writeValue(record)
		if err != nil || op != OpPut && (op != OpDelete || deleted == plainDeleted) || long {
			break
		}
		if op == OpDelete {
			deleted++
			sc.page.Deleted++
			sc.fillPassed(tso.Timestamp(version))
			ok = it.NextPrefix()
			continue
		}
		deleted = 0
		rows++
		last = append(last[:0], key...)
		if fill != nil && fill.add(key, value, tso.Timestamp(version), most) {
			bound, fill = append(bytes.Clone(key), 0), nil
			sc.blocks.bound = bound
		}
		if pair != nil {
			if keysOnly {
				value = nil
			}
			visit.Passed = true
			if visit.Failed = pair(key, value); visit.Failed != nil {
				break
			}
		}
		if rows == limit {
			break
		}
		if older > 0 {
			older--
			ok = it.NextPrefix()
		} else {
			ok = it.Next()
		}
	}
	sc.lastKey, sc.rows = last, rows
	sc.page.Count += rows - first
	sc.blocks.read += rows - first
	return ok
}
