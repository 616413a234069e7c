package types

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// The types of sets of transactions: those below xmin have ended, those from xmax on have not begun, those listed are running.
const (
	OIDSnapshot     OID = 5038
	OIDTxidSnapshot OID = 2970
)

func init() {
	for _, info := range []Info{
		{OIDSnapshot, "pg_snapshot", "pg_snapshot", 5039, 0, -1, CategoryUser, false, KindBytes},
		{OIDTxidSnapshot, "txid_snapshot", "txid_snapshot", 2949, 0, -1, CategoryUser, false, KindBytes},
	} {
		register(&Methods{
			Info: info, Unordered: true, NoEquality: true,
			Parse: func(s string, _ int32, _ *Format) (Datum, error) {
				snap, ok := parseSnapshot(s)
				if !ok {
					return Null, badSyntax("pg_snapshot", s)
				}
				return NewSnapshot(snap), nil
			},
			Append: appendSnapshot, Receive: receiveSnapshot, Send: sendBytes,
		})
	}
}

// Snapshot is a value of pg_snapshot or txid_snapshot. Running is in order.
type Snapshot struct {
	Min, Max uint64
	Running  []uint64
}

// valid reports whether the numbers make a snapshot: transactions have numbers that fit int64.
func (s *Snapshot) valid() bool {
	if s.Min == 0 || s.Max == 0 || s.Max < s.Min || s.Max > math.MaxInt64 {
		return false
	}
	last := s.Min
	for _, x := range s.Running {
		if x < last || x >= s.Max {
			return false
		}
		last = x
	}
	return true
}

// NewSnapshot returns a datum, which is the binary form: the number of running transactions, xmin, xmax, the running ones.
func NewSnapshot(s Snapshot) Datum {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(s.Running)))
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, s.Min), s.Max)
	for _, x := range s.Running {
		b = binary.BigEndian.AppendUint64(b, x)
	}
	return Bytes(b)
}

// Snapshot returns the value of a datum.
func (d Datum) Snapshot() Snapshot {
	b := d.Bytes()[4:]
	s := Snapshot{Min: binary.BigEndian.Uint64(b), Max: binary.BigEndian.Uint64(b[8:])}
	for b = b[16:]; len(b) >= 8; b = b[8:] {
		s.Running = append(s.Running, binary.BigEndian.Uint64(b))
	}
	return s
}

// Visible reports whether a transaction had ended.
func (s *Snapshot) Visible(x uint64) bool {
	if x < s.Min || x >= s.Max {
		return x < s.Min
	}
	for _, running := range s.Running {
		if running == x {
			return false
		}
	}
	return true
}

func parseSnapshot(text string) (s Snapshot, ok bool) {
	parts := strings.SplitN(text, ":", 3)
	if len(parts) != 3 {
		return s, false
	}
	var err1, err2 error
	s.Min, err1 = strconv.ParseUint(parts[0], 10, 64)
	s.Max, err2 = strconv.ParseUint(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return s, false
	}
	if parts[2] != "" {
		for part := range strings.SplitSeq(parts[2], ",") {
			x, err := strconv.ParseUint(part, 10, 64)
			if err != nil {
				return s, false
			}
			if n := len(s.Running); n == 0 || s.Running[n-1] != x {
				s.Running = append(s.Running, x)
			}
		}
	}
	return s, s.valid()
}

func appendSnapshot(dst []byte, d Datum, _ *Format) []byte {
	s := d.Snapshot()
	dst = append(strconv.AppendUint(dst, s.Min, 10), ':')
	dst = append(strconv.AppendUint(dst, s.Max, 10), ':')
	for i, x := range s.Running {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, x, 10)
	}
	return dst
}

func receiveSnapshot(b []byte, _ int32, _ *Format) (Datum, error) {
	if len(b) < 20 || uint64(len(b)) != 20+8*uint64(binary.BigEndian.Uint32(b)) {
		return Null, errShortMessage()
	}
	d := Bytes(b)
	if s := d.Snapshot(); !s.valid() {
		return Null, badBinary("invalid external pg_snapshot data")
	}
	return d, nil
}
