package server

import (
	"net/netip"
	"time"

	"github.com/percodb/percodb/auth"
)

// patience is for how long a client that is being let in may be silent when another one wants its place.
const patience = time.Second

// newcomer is a client that has yet to be let in.
type newcomer interface {
	LastHeard() time.Time
}

// starting are the clients that have yet to be let in, by the networks that they come from. Their number is bounded: when all places are
// taken, one that is silent makes room, of the network that has the most. Clients of one network therefore do not keep those
// of others out. Not safe for concurrent use.
type starting[C interface {
	comparable
	newcomer
}] struct {
	places int
	from   map[C]netip.Prefix
	shares map[netip.Prefix]int
}

func newStarting[C interface {
	comparable
	newcomer
}](places int) *starting[C] {
	return &starting[C]{places: places, from: map[C]netip.Prefix{}, shares: map[netip.Prefix]int{}}
}

// add gives a client a place. dropped is the client, unless it is the zero value, that makes room for it. !ok: there is no place.
func (s *starting[C]) add(c C, addr netip.Addr, now time.Time) (dropped C, ok bool) {
	network := auth.Network(addr)
	if len(s.from) >= s.places {
		if dropped, ok = s.silent(network, now); !ok {
			return dropped, false
		}
		s.remove(dropped)
	}
	s.from[c] = network
	s.shares[network]++
	return dropped, true
}

// remove gives the place of a client back. It reports whether the client had one.
func (s *starting[C]) remove(c C) bool {
	network, ok := s.from[c]
	if !ok {
		return false
	}
	delete(s.from, c)
	if s.shares[network]--; s.shares[network] == 0 {
		delete(s.shares, network)
	}
	return true
}

// silent returns the client that makes room for one of a network: of those from the networks with the most places, the one that has been
// silent the longest. It must have been silent for some time, unless its network has more than one place more than the other.
func (s *starting[C]) silent(network netip.Prefix, now time.Time) (longest C, ok bool) {
	most := 0
	for _, n := range s.shares {
		most = max(most, n)
	}
	var since time.Time
	for c, from := range s.from {
		if s.shares[from] != most {
			continue
		}
		if heard := c.LastHeard(); !ok || heard.Before(since) {
			longest, since, ok = c, heard, true
		}
	}
	if ok && now.Sub(since) < patience && most <= s.shares[network]+1 {
		ok = false
	}
	return longest, ok
}
