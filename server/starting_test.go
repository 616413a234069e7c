package server

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// candidate is a client that has last been heard at a time.
type candidate struct {
	name  string
	heard time.Time
}

func (c *candidate) LastHeard() time.Time { return c.heard }

// Goal: silent clients of one network keep no one of another out; among themselves those that have been silent the longest make room,
// and no one who has just been heard.
func TestStartingPlaces(t *testing.T) {
	now := time.Unix(1000, 0)
	attacker, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("198.51.100.1")
	s := newStarting[*candidate](4)
	add := func(name string, addr netip.Addr, silent time.Duration) (*candidate, string) {
		c := &candidate{name, now.Add(-silent)}
		dropped, ok := s.add(c, addr, now)
		switch {
		case !ok:
			return c, "refused"
		case dropped != nil:
			return c, dropped.name
		}
		return c, ""
	}
	for i := range 4 {
		if _, got := add(fmt.Sprint("a", i), attacker, time.Duration(i)*100*time.Millisecond); got != "" {
			t.Fatalf("a%d: %s", i, got)
		}
	}
	if _, got := add("a4", attacker, 0); got != "refused" { // None of them has been silent for long.
		t.Errorf("of the same network: %s", got)
	}
	first, got := add("o0", other, 0)
	if got != "a3" {
		t.Errorf("of another network: %s makes room", got)
	}
	if _, got := add("o1", other, 0); got != "a2" {
		t.Errorf("again: %s makes room", got)
	}
	if _, got := add("o2", other, 0); got != "refused" { // Both have two.
		t.Errorf("of a network with as many places: %s", got)
	}
	now = now.Add(2 * patience)
	first.heard = now
	if _, got := add("o3", other, 0); got != "a1" {
		t.Errorf("after a while: %s makes room", got)
	}
	if !s.remove(first) || s.remove(first) || len(s.from) != 3 || s.shares[netip.PrefixFrom(other, 32)] != 2 {
		t.Errorf("%d clients, shares %v", len(s.from), s.shares)
	}
	// The hosts of one IPv6 network are counted together.
	for i := range 4 {
		add("6", netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i+1)), time.Hour)
	}
	if n := s.shares[netip.MustParsePrefix("2001:db8::/64")]; n == 0 || n > 3 || len(s.from) != 4 {
		t.Errorf("%d of an IPv6 network, %d in all", n, len(s.from))
	}
}
