package auth

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/percodb/percodb/audit"
	"github.com/percodb/percodb/sql/pgerror"
)

// Refused is why a client is not let in.
type Refused struct {
	Err *pgerror.Error // what it is sent
	// Line is that of the rule that has decided, 0 if none has. Why is the reason that the client is not sent; nil: there is no other.
	Line int
	Why  error
}

func (e *Refused) Error() string { return e.Err.Error() }
func (e *Refused) Unwrap() error { return e.Err }

const (
	// From one address, addressBurst refusals are reported at once, and then one in each addressEvery; from all together allBurst, and one
	// in each allEvery: some 100 MB a day at most.
	addressBurst, allBurst = 20, 200
	addressEvery, allEvery = time.Second, 200 * time.Millisecond
	// countAfter is after how long the refusals are counted that were not reported.
	countAfter = 10 * time.Second
)

// refusals decides which refusals are reported. Its memory is bounded. Safe for concurrent use.
type refusals struct {
	mu     sync.Mutex
	all    bucket
	byAddr *simplelru.LRU[netip.Prefix, *bucket]
	count  int // of those not reported
	since  time.Time
	timer  *time.Timer // reports the count; nil: there is none
	now    func() time.Time
}

// bucket holds tokens, of which each report takes one.
type bucket struct {
	tokens float64
	at     time.Time
}

// fill adds the tokens of the time that has passed.
func (b *bucket) fill(now time.Time, burst float64, every time.Duration) {
	b.tokens = min(burst, b.tokens+float64(now.Sub(b.at))/float64(every))
	b.at = now
}

func newRefusals() *refusals {
	lru, err := simplelru.NewLRU[netip.Prefix, *bucket](maxFailing, nil)
	if err != nil {
		panic("BUG: " + err.Error()) // Only if the size is not positive.
	}
	now := time.Now()
	return &refusals{byAddr: lru, now: time.Now, all: bucket{allBurst, now}}
}

// permit reports whether a refusal of a client at an address is reported. One that is not is counted, and report is called with the
// count some time later.
func (r *refusals) permit(addr netip.Addr, report func(count int, since time.Time)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	own, ok := r.byAddr.Get(Network(addr))
	if !ok {
		own = &bucket{addressBurst, now}
		r.byAddr.Add(Network(addr), own)
	}
	own.fill(now, addressBurst, addressEvery)
	r.all.fill(now, allBurst, allEvery)
	if own.tokens >= 1 && r.all.tokens >= 1 {
		own.tokens--
		r.all.tokens--
		return true
	}
	if r.count++; r.count == 1 {
		r.since = now
		r.timer = time.AfterFunc(countAfter, func() { r.flush(report) })
	}
	return false
}

// flush reports the count of refusals that were not reported.
func (r *refusals) flush(report func(count int, since time.Time)) {
	r.mu.Lock()
	count, since := r.count, r.since
	r.count = 0
	if r.timer != nil {
		r.timer.Stop()
	}
	r.mu.Unlock()
	if count > 0 {
		report(count, since)
	}
}

// Report logs that a client was refused, at a bounded rate: of what exceeds it, the number.
func (g *Gate) Report(c *Client, err error) {
	if !g.refusals.permit(c.Address(), g.reportCount) {
		return
	}
	refused := &Refused{}
	if !errors.As(err, &refused) {
		refused = &Refused{}
		if !errors.As(err, &refused.Err) {
			refused.Err = pgerror.New(pgerror.InternalError, "%v", err)
		}
	}
	attrs := []any{"address", Where(c.Addr)}
	for _, a := range []struct{ name, value string }{{"user", c.User}, {"database", c.Database}, {"application_name", c.Application}, {"path", c.Path}} {
		if a.value != "" {
			attrs = append(attrs, a.name, a.value)
		}
	}
	attrs = append(attrs, "code", refused.Err.Code, "message", refused.Err.Message)
	if refused.Line != 0 {
		attrs = append(attrs, "line", refused.Line)
	}
	event := c.Event(audit.Refused)
	event.SQLState, event.Message, event.Line = string(refused.Err.Code), refused.Err.Message, refused.Line
	if refused.Why != nil {
		attrs = append(attrs, "reason", refused.Why)
		event.Reason = refused.Why.Error()
	}
	g.opts.Logger.Warn("client refused", attrs...)
	g.opts.Audit.Write(event)
}

// reportCount logs how many refusals Report has left out.
func (g *Gate) reportCount(count int, since time.Time) {
	g.opts.Logger.Warn("more clients refused, which are not listed", "count", count, "since", since)
	g.opts.Audit.Write(audit.Event{Event: audit.Suppressed, Count: count, Since: since.UTC().Format(time.RFC3339)})
}

// Close logs what is to be logged still.
func (g *Gate) Close() { g.refusals.flush(g.reportCount) }
