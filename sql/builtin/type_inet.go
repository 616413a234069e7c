package builtin

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func inetOps() []decl {
	out := []decl{
		{sig: "&(inet,inet) inet", fn: inetLogic('&')}, {sig: "|(inet,inet) inet", fn: inetLogic('|')}, {sig: "~(inet) inet", fn: inetNot},
		{sig: "+(inet,int8) inet", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return inetAdd(a, b.Int()) })},
		{sig: "+(int8,inet) inet", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return inetAdd(b, a.Int()) })},
		{sig: "-(inet,int8) inet", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return inetAdd(a, -b.Int()) })},
		{sig: "-(inet,inet) int8", fn: fn2(inetSub)},
	}
	for _, t := range []string{"macaddr", "macaddr8"} {
		out = append(out, decl{sig: "&(" + t + "," + t + ") " + t, fn: octetLogic('&')}, decl{sig: "|(" + t + "," + t + ") " + t, fn: octetLogic('|')},
			decl{sig: "~(" + t + ") " + t, fn: octetNot})
	}
	for _, c := range containments {
		out = append(out, decl{sig: c.op + "(inet,inet) bool", fn: c.fn()})
	}
	return out
}

func inetFuncs() []decl {
	out := []decl{
		{sig: "inetand(inet,inet) inet", fn: inetLogic('&')}, {sig: "inetor(inet,inet) inet", fn: inetLogic('|')}, {sig: "inetnot(inet) inet", fn: inetNot},
		{sig: "inetmi(inet,inet) int8", fn: fn2(inetSub)},
		{sig: "inetpl(inet,int8) inet", fn: fn2(func(a, b types.Datum) (types.Datum, error) { return inetAdd(a, b.Int()) })},
		{sig: "abbrev(inet) text", fn: inetText(func(n types.Inet) []byte { return n.Append(nil, false) })},
		{sig: "abbrev(cidr) text", fn: inetText(func(n types.Inet) []byte { return n.AppendAbbreviated(nil) })},
		{sig: "host(inet) text", fn: inetText(func(n types.Inet) []byte { return n.AppendHost(nil) })},
		{sig: "family(inet) int4", fn: fn1(func(a types.Datum) (types.Datum, error) { return types.Int(int64(a.Inet().Family())), nil })},
		{sig: "masklen(inet) int4", fn: fn1(func(a types.Datum) (types.Datum, error) { return types.Int(int64(a.Inet().Bits)), nil })},
		{sig: "set_masklen(inet,int4) inet", fn: setMasklen(false)}, {sig: "set_masklen(cidr,int4) cidr", fn: setMasklen(true)},
		{sig: "network(inet) cidr", fn: fn1(inetNetwork)},
		{sig: "netmask(inet) inet", fn: inetMap(func(n types.Inet) types.Inet { return types.Inet{Addr: n.Mask(), Bits: n.MaxBits()} })},
		{sig: "hostmask(inet) inet", fn: inetMap(func(n types.Inet) types.Inet { return types.Inet{Addr: complement(n.Mask()), Bits: n.MaxBits()} })},
		{sig: "broadcast(inet) inet", fn: inetMap(func(n types.Inet) types.Inet {
			host := complement(n.Mask())
			for i := range host {
				host[i] |= n.Addr[i]
			}
			return types.Inet{Addr: host, Bits: n.Bits}
		})},
		{sig: "inet_same_family(inet,inet) bool", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			return types.Bool(a.Inet().Family() == b.Inet().Family()), nil
		})},
		{sig: "inet_merge(inet,inet) cidr", fn: fn2(inetMerge)},
		{sig: "trunc(macaddr) macaddr", fn: octetTrunc}, {sig: "trunc(macaddr8) macaddr8", fn: octetTrunc},
		{sig: "macaddr8_set7bit(macaddr8) macaddr8", fn: fn1(func(a types.Datum) (types.Datum, error) {
			b := bytes.Clone(a.Bytes())
			b[0] |= 2
			return types.Bytes(b), nil
		})},
	}
	for _, t := range []string{"macaddr", "macaddr8"} {
		out = append(out, decl{sig: t + "_and(" + t + "," + t + ") " + t, fn: octetLogic('&')}, decl{sig: t + "_or(" + t + "," + t + ") " + t, fn: octetLogic('|')},
			decl{sig: t + "_not(" + t + ") " + t, fn: octetNot})
		out = append(out, comparisonFuncs(t+"_", t, t+"_cmp")...)
	}
	for _, c := range containments {
		out = append(out, decl{sig: c.name + "(inet,inet) bool", fn: c.fn()})
	}
	for i, name := range []string{"network_smaller", "network_larger"} {
		out = append(out, decl{sig: name + "(inet,inet) inet", fn: fn2(func(a, b types.Datum) (types.Datum, error) {
			if (bytes.Compare(a.Bytes(), b.Bytes()) < 0) == (i == 0) {
				return a, nil
			}
			return b, nil
		})})
	}
	return append(out, comparisonFuncs("network_", "inet", "network_cmp")...)
}

func inetCasts() []typeCast {
	text := inetText(func(n types.Inet) []byte { return n.Append(nil, true) })
	out := []typeCast{
		{from: "cidr", to: "inet", context: Implicit}, {from: "inet", to: "cidr", context: Assignment, fn: fn1(inetNetwork)},
		{from: "macaddr", to: "macaddr8", context: Implicit, fn: fn1(func(a types.Datum) (types.Datum, error) {
			return types.Bytes(types.WidenMacaddr(a.Bytes())), nil
		})},
		{from: "macaddr8", to: "macaddr", context: Implicit, fn: fn1(narrowMacaddr)},
	}
	for _, to := range []string{"text", "varchar", "bpchar"} {
		out = append(out, typeCast{from: "inet", to: to, context: Assignment, fn: text, unnamed: to != "text"},
			typeCast{from: "cidr", to: to, context: Assignment, fn: text, unnamed: true})
	}
	return out
}

// containments are the operators on networks, by what they mean for a and b.
var containments = []inetTest{
	{"<<", "network_sub", func(a, b types.Inet) bool { return b.Contains(a) && a.Bits > b.Bits }},
	{"<<=", "network_subeq", func(a, b types.Inet) bool { return b.Contains(a) }},
	{">>", "network_sup", func(a, b types.Inet) bool { return a.Contains(b) && b.Bits > a.Bits }},
	{">>=", "network_supeq", func(a, b types.Inet) bool { return a.Contains(b) }},
	{"&&", "network_overlap", func(a, b types.Inet) bool { return a.Contains(b) || b.Contains(a) }},
}

type inetTest struct {
	op, name string
	test     func(a, b types.Inet) bool
}

func (c inetTest) fn() Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) { return types.Bool(c.test(a.Inet(), b.Inet())), nil })
}

func inetText(f func(types.Inet) []byte) Func {
	return fn1(func(a types.Datum) (types.Datum, error) { return types.Bytes(f(a.Inet())), nil })
}

func inetMap(f func(types.Inet) types.Inet) Func {
	return fn1(func(a types.Datum) (types.Datum, error) { return types.NewInet(f(a.Inet())), nil })
}

func complement(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = ^c
	}
	return out
}

func combineOctets(op byte, a, b []byte) []byte {
	out := bytes.Clone(a)
	for i, c := range b {
		if op == '&' {
			out[i] &= c
		} else {
			out[i] |= c
		}
	}
	return out
}

func octetLogic(op byte) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		return types.Bytes(combineOctets(op, a.Bytes(), b.Bytes())), nil
	})
}

func octetNot(_ *Env, a []types.Datum) (types.Datum, error) {
	return types.Bytes(complement(a[0].Bytes())), nil
}

// octetTrunc keeps the manufacturer's three octets.
func octetTrunc(_ *Env, a []types.Datum) (types.Datum, error) {
	b := bytes.Clone(a[0].Bytes())
	clear(b[3:])
	return types.Bytes(b), nil
}

func narrowMacaddr(a types.Datum) (types.Datum, error) {
	b := a.Bytes()
	if b[3] != 0xFF || b[4] != 0xFE {
		return types.Null, pgerror.New(pgerror.NumericValueOutOfRange, "macaddr8 data out of range to convert to macaddr").
			WithHint("Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.")
	}
	return types.Bytes([]byte{b[0], b[1], b[2], b[5], b[6], b[7]}), nil
}

func inetLogic(op byte) Func {
	return fn2(func(x, y types.Datum) (types.Datum, error) {
		a, b := x.Inet(), y.Inet()
		if a.Family() != b.Family() {
			name := map[byte]string{'&': "AND", '|': "OR"}[op]
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot %s inet values of different sizes", name)
		}
		return types.NewInet(types.Inet{Addr: combineOctets(op, a.Addr, b.Addr), Bits: max(a.Bits, b.Bits)}), nil
	})
}

func inetNot(_ *Env, a []types.Datum) (types.Datum, error) {
	n := a[0].Inet()
	return types.NewInet(types.Inet{Addr: complement(n.Addr), Bits: n.Bits}), nil
}

func inetNetwork(a types.Datum) (types.Datum, error) {
	n := a.Inet()
	return types.NewInet(types.Inet{Addr: n.Network(), Bits: n.Bits}), nil
}

func setMasklen(cidr bool) Func {
	return fn2(func(a, b types.Datum) (types.Datum, error) {
		n, width := a.Inet(), b.Int()
		if width == -1 {
			width = int64(n.MaxBits())
		}
		if width < 0 || width > int64(n.MaxBits()) {
			return types.Null, pgerror.New(pgerror.InvalidParameterValue, "invalid mask length: %d", width)
		}
		n.Bits = int(width)
		if cidr {
			n.Addr = n.Network()
		}
		return types.NewInet(n), nil
	})
}

func errInetRange() error {
	return pgerror.New(pgerror.NumericValueOutOfRange, "result is out of range")
}

// inetAdd adds n, with its sign, to an address.
func inetAdd(a types.Datum, n int64) (types.Datum, error) {
	v := a.Inet()
	out := make([]byte, len(v.Addr))
	carry := int64(0)
	for i := len(out) - 1; i >= 0; i-- {
		sum := int64(v.Addr[i]) + (n & 0xFF) + carry
		out[i], carry = byte(sum), sum>>8
		n >>= 8
	}
	// What is left is the sign, which the carry of a sum within the range cancels.
	if !(n == 0 && carry == 0 || n == -1 && carry == 1) {
		return types.Null, errInetRange()
	}
	return types.NewInet(types.Inet{Addr: out, Bits: v.Bits}), nil
}

func inetSub(x, y types.Datum) (types.Datum, error) {
	a, b := x.Inet(), y.Inet()
	if a.Family() != b.Family() {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot subtract inet values of different sizes")
	}
	if len(a.Addr) == 4 {
		return types.Int(int64(binary.BigEndian.Uint32(a.Addr)) - int64(binary.BigEndian.Uint32(b.Addr))), nil
	}
	low, borrow := bits.Sub64(binary.BigEndian.Uint64(a.Addr[8:]), binary.BigEndian.Uint64(b.Addr[8:]), 0)
	high, _ := bits.Sub64(binary.BigEndian.Uint64(a.Addr), binary.BigEndian.Uint64(b.Addr), borrow)
	if int64(high) != int64(low)>>63 {
		return types.Null, errInetRange()
	}
	return types.Int(int64(low)), nil
}

// inetMerge returns the smallest network that contains both.
func inetMerge(x, y types.Datum) (types.Datum, error) {
	a, b := x.Inet(), y.Inet()
	if a.Family() != b.Family() {
		return types.Null, pgerror.New(pgerror.InvalidParameterValue, "cannot merge addresses from different families")
	}
	n := types.Inet{Addr: a.Addr, Bits: min(a.Bits, b.Bits)}
	for !n.Contains(types.Inet{Addr: b.Addr, Bits: b.MaxBits()}) {
		n.Bits--
	}
	n.Addr = n.Network()
	return types.NewInet(n), nil
}
