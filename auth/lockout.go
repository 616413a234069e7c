package auth

import (
	"context"
	"errors"
	"net/netip"
	"slices"
)

// MaxStoredRules is the length of the longest rules that ALTER SYSTEM stores, in bytes.
const MaxStoredRules = 64 << 10

var (
	errNoRules   = errors.New("the rules contain no entries")
	errTooLong   = errors.New("the rules are longer than 64 kB; a file of rules (--hba) can be longer")
	errLockedOut = errors.New("no superuser could log in by these rules")
)

// CheckRules returns why rules must not be stored: lines that are not valid or that this server cannot obey, or no superuser could log in
// any more. superusers are those who may log in, by name.
func (g *Gate) CheckRules(ctx context.Context, text string, database string, superusers map[string]*Role) error {
	if len(text) > MaxStoredRules {
		return errTooLong
	}
	rules, invalid := ParseRules(text)
	var errs []error
	for _, e := range append(invalid, g.unusable(rules)...) {
		errs = append(errs, e)
	}
	switch {
	case len(errs) > 0:
		return errors.Join(errs...)
	case len(rules) == 0:
		return errNoRules
	}
	for name, role := range superusers {
		if ok, err := g.reaches(ctx, rules, database, name, role); ok || err != nil {
			return err
		}
	}
	return errLockedOut
}

// reaches reports whether a user can be let in by rules, from some address. All addresses between two ends of the rules' networks match the
// same rules, so the ends and their neighbours stand for all.
func (g *Gate) reaches(ctx context.Context, rules []Rule, database, user string, role *Role) (bool, error) {
	interfaces := g.interfaces()
	for _, addr := range g.places(rules, interfaces) {
		for _, encrypted := range []bool{false, true} {
			if encrypted && (g.opts.Certificates.Cert == "" || !addr.IsValid()) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return false, err
			}
			r := Match(rules, &Connection{
				Addr: addr, TLS: encrypted, User: user, Database: database, MemberOf: role.MemberOf,
				Interfaces: func() []netip.Prefix { return interfaces },
			})
			if r != nil && r.Method != Reject && (r.Method != Password || role.HasPassword()) {
				return true, nil
			}
		}
	}
	return false, nil
}

// places returns addresses that stand for all from which clients can connect; the zero Addr is the Unix socket.
func (g *Gate) places(rules []Rule, interfaces []netip.Prefix) []netip.Addr {
	var all []netip.Addr
	if g.opts.Reach.Socket {
		all = append(all, netip.Addr{})
	}
	add := func(addr netip.Addr) {
		if addr.IsValid() && (addr.IsLoopback() || !g.opts.Reach.Loopback) {
			all = append(all, addr)
		}
	}
	add(netip.IPv6Loopback())
	ends := func(p netip.Prefix) {
		first, last := p.Masked().Addr(), lastOf(p)
		add(first)
		add(last)
		add(first.Prev())
		add(last.Next())
	}
	ends(netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 32))
	for _, p := range interfaces {
		ends(p)
		ends(netip.PrefixFrom(p.Addr(), p.Addr().BitLen()))
	}
	for i := range rules {
		if rules[i].addresses == network && rules[i].Type != Local {
			ends(rules[i].prefix)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// lastOf returns the last address of a network.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	addr, _ := netip.AddrFromSlice(bytes) // 4 or 16 bytes.
	return addr
}
