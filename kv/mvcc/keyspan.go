package mvcc

import "bytes"

// Span is a half-open interval of keys [Start, End). An empty End means up to the last key.
type Span struct{ Start, End []byte }

// Contains reports whether key lies in the span.
func (s *Span) Contains(key []byte) bool {
	return bytes.Compare(s.Start, key) <= 0 && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0)
}

// ContainsSpan reports whether o lies in the span.
func (s *Span) ContainsSpan(o *Span) bool {
	return bytes.Compare(s.Start, o.Start) <= 0 && CompareEnds(o.End, s.End) <= 0
}

// Overlaps reports whether some key may lie in both spans.
func (s *Span) Overlaps(o *Span) bool {
	return (len(o.End) == 0 || bytes.Compare(s.Start, o.End) < 0) &&
		(len(s.End) == 0 || bytes.Compare(o.Start, s.End) < 0)
}

// Valid reports whether the span may hold a key.
func (s *Span) Valid() bool { return len(s.End) == 0 || bytes.Compare(s.Start, s.End) < 0 }

// isPoint reports whether the span holds its first key alone.
func (s *Span) isPoint() bool {
	n := len(s.Start)
	return len(s.End) == n+1 && s.End[n] == 0 && bytes.Equal(s.End[:n], s.Start)
}

// CompareEnds compares exclusive bounds, of which the empty one is the largest.
func CompareEnds(a, b []byte) int {
	switch {
	case len(a) == 0 && len(b) == 0:
		return 0
	case len(a) == 0:
		return 1
	case len(b) == 0:
		return -1
	default:
		return bytes.Compare(a, b)
	}
}
