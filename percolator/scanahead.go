package percolator

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/percodb/percodb/kv"
)

// pageAhead is the request for the page after the one whose rows the scan returns, if it reads ahead. Another goroutine
// waits for the shard and does nothing else: locks in the page, errors, and the transaction's reads are seen to when the
// scan takes the page.
type pageAhead struct {
	req    kv.ScanRequest
	cancel context.CancelFunc
	ready  chan struct{}
	// Once ready is closed:
	page *kv.ScanResponse
	err  error
	bug  any // see panicOf
}

// readAhead requests the page after the present one.
func (s *scan) readAhead(caller context.Context) {
	if s.drained {
		return
	}
	shard, err := s.prepare(caller)
	if err != nil {
		return // The scan gets the error when it asks itself.
	}
	ctx, cancel := context.WithCancel(caller)
	a := &pageAhead{req: s.req, cancel: cancel, ready: make(chan struct{})}
	a.req.Reuse = s.ahead.spare
	s.ahead.spare, s.ahead.next = nil, a
	s.snap.requests.scan()
	go func() {
		defer close(a.ready)
		a.bug = panicOf(func() { a.page, a.err = shard.Scan(ctx, &a.req) })
	}()
}

// takeAhead returns the page that was requested ahead. It is nil if there is none, or if the scan has to ask for itself:
// the request has failed, perhaps because the statement that made it is over, or the snapshot has moved.
func (s *scan) takeAhead(ctx context.Context) (*kv.ScanResponse, error) {
	a := s.ahead.next
	if a == nil {
		return nil, nil
	}
	select {
	case <-a.ready:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	a.cancel()
	s.ahead.next = nil
	if a.bug != nil {
		panic(a.bug)
	}
	if a.err != nil || a.req.ReadTS != s.snap.readTS {
		return nil, nil
	}
	return a.page, nil
}

// stopAhead ends the request, if there is one: none is running when it returns.
func (s *scan) stopAhead() {
	if a := s.ahead.next; a != nil {
		a.cancel()
		<-a.ready
		s.ahead.next = nil
	}
	s.ahead.spare = nil
}

// panicOf returns what f panics with, and where; nil if it does not. A goroutine that works for a transaction leaves the
// panic to the transaction's own, which knows how to end what has failed without ending the process.
func panicOf(f func()) (bug any) {
	defer func() {
		if p := recover(); p != nil {
			bug = fmt.Sprintf("%v, in a goroutine of the transaction:\n%s", p, debug.Stack())
		}
	}()
	f()
	return nil
}
