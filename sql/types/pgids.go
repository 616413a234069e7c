package types

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
)

// The types of PostgreSQL's identifiers of transactions, commands, rows and places in the log.
const (
	OIDTid  OID = 27
	OIDXid  OID = 28
	OIDCid  OID = 29
	OIDLSN  OID = 3220
	OIDXid8 OID = 5069
)

func init() {
	for _, m := range []*Methods{
		{Info: Info{OIDXid, "xid", "xid", 1011, 0, 4, CategoryUser, false, KindInt}},
		{Info: Info{OIDCid, "cid", "cid", 1012, 0, 4, CategoryUser, false, KindInt}},
	} {
		m.Unordered = true
		m.Parse = func(s string, _ int32, _ *Format) (Datum, error) { return Int(int64(uint32(leadingNumber(s)))), nil }
		m.Append = func(dst []byte, d Datum, _ *Format) []byte { return appendInt(dst, d.n) }
		m.Receive = func(b []byte, _ int32, _ *Format) (Datum, error) {
			if err := requireSize(b, 4); err != nil {
				return Null, err
			}
			return Int(int64(binary.BigEndian.Uint32(b))), nil
		}
		m.Send = func(dst []byte, d Datum) []byte { return binary.BigEndian.AppendUint32(dst, uint32(d.n)) }
		register(m)
	}
	register(&Methods{
		Info: Info{OIDXid8, "xid8", "xid8", 271, 0, 8, CategoryUser, false, KindBytes}, MinMax: true,
		Parse:   func(s string, _ int32, _ *Format) (Datum, error) { return Uint64(leadingNumber(s)), nil },
		Append:  func(dst []byte, d Datum, _ *Format) []byte { return strconv.AppendUint(dst, d.Uint64(), 10) },
		Receive: receiveFixed(8), Send: sendBytes,
	})
	register(&Methods{
		Info: Info{OIDLSN, "pg_lsn", "pg_lsn", 3221, 0, 8, CategoryUser, false, KindBytes}, MinMax: true,
		Parse: parseLSN, Append: appendLSN, Receive: receiveFixed(8), Send: sendBytes,
	})
	register(&Methods{
		Info: Info{OIDTid, "tid", "tid", 1010, 0, 6, CategoryUser, false, KindBytes}, MinMax: true,
		Parse: parseTid, Append: appendTid, Receive: receiveFixed(6), Send: sendBytes,
	})
}

// Uint64 returns a datum of an xid8 or pg_lsn: eight bytes, the highest first.
func Uint64(n uint64) Datum { return Bytes(binary.BigEndian.AppendUint64(nil, n)) }

// Uint64 returns the value of an xid8 or pg_lsn.
func (d Datum) Uint64() uint64 { return binary.BigEndian.Uint64(d.Bytes()) }

// leadingNumber is C's strtoull with base 0: what does not belong to the number is ignored, as PostgreSQL does.
func leadingNumber(s string) uint64 {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	base := uint64(10)
	switch {
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0X"):
		base, s = 16, s[2:]
	case strings.HasPrefix(s, "0"):
		base = 8
	}
	var n uint64
	for i := 0; i < len(s); i++ {
		c, ok := bitDigit(s[i])
		if !ok || uint64(c) >= base {
			break
		}
		if n > (math.MaxUint64-uint64(c))/base {
			return math.MaxUint64
		}
		n = n*base + uint64(c)
	}
	if negative {
		return -n
	}
	return n
}

func parseLSN(s string, _ int32, _ *Format) (Datum, error) {
	high, low, ok := strings.Cut(s, "/")
	if !ok || len(high) < 1 || len(high) > 8 || len(low) < 1 || len(low) > 8 {
		return Null, badSyntax("pg_lsn", s)
	}
	h, err1 := strconv.ParseUint(high, 16, 32)
	l, err2 := strconv.ParseUint(low, 16, 32)
	if err1 != nil || err2 != nil {
		return Null, badSyntax("pg_lsn", s)
	}
	return Uint64(h<<32 | l), nil
}

func appendLSN(dst []byte, d Datum, _ *Format) []byte {
	n := d.Uint64()
	text := strconv.FormatUint(n>>32, 16) + "/" + strconv.FormatUint(n&math.MaxUint32, 16)
	return append(dst, strings.ToUpper(text)...)
}

func parseTid(s string, _ int32, _ *Format) (Datum, error) {
	open, end := strings.IndexByte(s, '('), strings.IndexByte(s, ')')
	if open < 0 || end < open {
		return Null, badSyntax("tid", s)
	}
	block, offset, ok := strings.Cut(s[open+1:end], ",")
	b, err1 := strconv.ParseInt(block, 10, 64)
	o, err2 := strconv.ParseUint(offset, 10, 16)
	if !ok || err1 != nil || err2 != nil || b > math.MaxUint32 || b < math.MinInt32 {
		return Null, badSyntax("tid", s)
	}
	return Bytes(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(nil, uint32(b)), uint16(o))), nil
}

func appendTid(dst []byte, d Datum, _ *Format) []byte {
	b := d.Bytes()
	dst = strconv.AppendUint(append(dst, '('), uint64(binary.BigEndian.Uint32(b)), 10)
	dst = strconv.AppendUint(append(dst, ','), uint64(binary.BigEndian.Uint16(b[4:])), 10)
	return append(dst, ')')
}
