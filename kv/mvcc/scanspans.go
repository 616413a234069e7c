package mvcc

import (
	"bytes"

	"github.com/percodb/percodb/kv/storage"
)

// One iterator walks all spans of a scan. Where the key it has come to lies behind its span, and before
// the next one, it jumps; short gaps it has passed by itself.
//
//	spans      [a,c)        [g,i)  [k,m)
//	keys     a  b      d e      h    l
//	walk     ●  ●  →   ✗ ──▶    ●  → ●

// ascendingSpans reports whether spans are disjoint, not empty, and in key order.
func ascendingSpans(spans []Span) bool {
	for i := range spans {
		if !spans[i].Valid() {
			return false
		}
		if i > 0 && (len(spans[i-1].End) == 0 || bytes.Compare(spans[i-1].End, spans[i].Start) > 0) {
			return false
		}
	}
	return true
}

// enterAbove is called while spans remain after the current one, with the iterator at a key. If that lies in no span it
// moves on to the first one that does, or into the last span's bounds; false if there is none.
func (sc *scanner) enterAbove() bool {
	prefix, _, isVersion := storage.SplitVersion(sc.it.Key())
	if !isVersion {
		return true // for the caller to complain about
	}
	key := userKey(prefix)
	if bytes.Compare(key, sc.spans[sc.at].End) < 0 {
		return true
	}
	for sc.at < len(sc.spans)-1 {
		sc.at++
		span := &sc.spans[sc.at]
		if bytes.Compare(key, span.Start) < 0 {
			sc.it.Buf = appendPrefix(sc.it.Buf[:0], tagWrite, span.Start)
			if !sc.it.SeekGE(sc.it.Buf) {
				return false
			}
			if prefix, _, isVersion = storage.SplitVersion(sc.it.Key()); !isVersion {
				return true
			}
			key = userKey(prefix)
		}
		if len(span.End) == 0 || bytes.Compare(key, span.End) < 0 {
			return true
		}
	}
	return false // behind the last span, whatever the iterator's bound is
}

// spanBelow returns the present span of a walk in reverse.
func (sc *scanner) spanBelow() *Span { return &sc.spans[len(sc.spans)-1-sc.at] }

// enterBelow is enterAbove for a walk in reverse.
func (sc *scanner) enterBelow() bool {
	prefix, _, isVersion := storage.SplitVersion(sc.it.Key())
	if !isVersion {
		return true
	}
	key := userKey(prefix)
	if bytes.Compare(key, sc.spanBelow().Start) >= 0 {
		return true
	}
	for sc.at < len(sc.spans)-1 {
		sc.at++
		span := sc.spanBelow()
		if bytes.Compare(key, span.End) >= 0 { // none but the last, where the walk began, has no end
			sc.it.Buf = appendUpper(sc.it.Buf[:0], tagWrite, span.End)
			if !sc.it.SeekLT(sc.it.Buf) {
				return false
			}
			if prefix, _, isVersion = storage.SplitVersion(sc.it.Key()); !isVersion {
				return true
			}
			key = userKey(prefix)
		}
		if bytes.Compare(key, span.Start) >= 0 {
			return true
		}
	}
	return false
}
