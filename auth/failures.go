package auth

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/percodb/percodb/sql/pgerror"
)

const (
	// maxFailing is the number of addresses whose failures are remembered; those that failed longest ago are forgotten.
	maxFailing = 4096
	// freeFailures is the number of failures that slow nobody.
	freeFailures = 4
	// firstDelay follows them; each further failure doubles it up to maxDelay.
	firstDelay = 100 * time.Millisecond
	maxDelay   = 5 * time.Second
	// forgiveAfter is the time after which one failure is forgotten.
	forgiveAfter = 15 * time.Second
	// maxFailures is the largest count: maxDelay is over a few minutes after the last failure.
	maxFailures = 20
	// maxWaiting is the number of logins from one address that are delayed at the same time; more are refused.
	maxWaiting = 4
)

// failures slows logins from addresses from which wrong passwords have come. Its memory is bounded. Safe for concurrent use.
type failures struct {
	mu     sync.Mutex
	byAddr *simplelru.LRU[netip.Prefix, *failing]
	now    func() time.Time
}

// failing is an address from which wrong passwords have come.
type failing struct {
	count   int
	since   time.Time // of the count
	waiting int
	checked int // passwords that are being checked
}

func newFailures() *failures {
	lru, err := simplelru.NewLRU[netip.Prefix, *failing](maxFailing, nil)
	if err != nil {
		panic("BUG: " + err.Error()) // Only if the size is not positive.
	}
	return &failures{byAddr: lru, now: time.Now}
}

// Network is whom clients are counted by: an IPv4 address, the IPv6 network of a host, or all clients of the Unix socket.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	p, _ := addr.Prefix(min(addr.BitLen(), 64)) // The zero Addr has no prefix: the zero Prefix.
	return p
}

// at returns the record of an address with its present count, nil if there is none.
func (f *failures) at(addr netip.Addr) *failing {
	r, ok := f.byAddr.Get(Network(addr))
	if !ok {
		return nil
	}
	forgiven := int(f.now().Sub(r.since) / forgiveAfter)
	r.count = max(r.count-forgiven, 0)
	r.since = r.since.Add(time.Duration(forgiven) * forgiveAfter)
	return r
}

// add counts a wrong password.
func (f *failures) add(addr netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.at(addr)
	if r == nil {
		r = &failing{since: f.now()}
		f.byAddr.Add(Network(addr), r)
	}
	if r.count == 0 {
		r.since = f.now()
	}
	r.count = min(r.count+1, maxFailures)
}

// delayOf is for how long a login is delayed after so many failures.
func delayOf(count int) time.Duration {
	if count <= freeFailures {
		return 0
	}
	return min(firstDelay<<min(count-freeFailures-1, 20), maxDelay)
}

// enter begins the check of a password in clear from an address, of which there are few at the same time; leave ends it. An error is the
// client's.
func (f *failures) enter(addr netip.Addr) (leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.at(addr)
	if r == nil {
		r = &failing{since: f.now()}
		f.byAddr.Add(Network(addr), r)
	}
	if r.checked >= maxWaiting {
		return nil, errTooMany()
	}
	r.checked++
	return func() {
		f.mu.Lock()
		r.checked--
		f.mu.Unlock()
	}, nil
}

func errTooMany() error {
	return pgerror.New(pgerror.TooManyConnections, "too many failed logins from this address").WithHint("Try again later.")
}

// wait delays a login from an address. An error is the client's.
func (f *failures) wait(ctx context.Context, addr netip.Addr) error {
	f.mu.Lock()
	r := f.at(addr)
	if r == nil || delayOf(r.count) == 0 {
		f.mu.Unlock()
		return nil
	}
	delay := delayOf(r.count)
	if r.waiting >= maxWaiting {
		f.mu.Unlock()
		return errTooMany()
	}
	r.waiting++
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		r.waiting--
		f.mu.Unlock()
	}()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
