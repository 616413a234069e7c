package rpc

import (
	"context"
	"sync"

	"github.com/percodb/percodb/kv/rpc/kvpb"
)

const (
	// maxStatusCalls bounds the requests for transactions' fates under way to one shard. One more is
	// put together with others that come meanwhile: a reader who has met the locks of a thousand dead
	// clients asks a few times, not a thousand.
	maxStatusCalls = 4
	// maxStatusBatch bounds the questions in one request.
	maxStatusBatch = 1024
)

// statusBatcher sends questions about transactions' fates. Safe for concurrent use.
type statusBatcher struct {
	shard *Shard
	mu    sync.Mutex
	calls int // under way
	queue []*statusQuestion
}

// statusQuestion is one that waits for others' answers to come, and then for its own.
type statusQuestion struct {
	req  *kvpb.CheckTxnStatusRequest
	done chan struct{}
	res  *kvpb.CheckTxnStatusResponse
	err  error
}

// ask returns the answer to req.
func (b *statusBatcher) ask(ctx context.Context, req *kvpb.CheckTxnStatusRequest) (*kvpb.CheckTxnStatusResponse, error) {
	b.mu.Lock()
	if b.calls < maxStatusCalls {
		b.calls++
		b.mu.Unlock()
		defer b.next()
		return call(ctx, b.shard.name, b.shard.opts, b.shard.client.CheckTxnStatus, req)
	}
	q := &statusQuestion{req: req, done: make(chan struct{})}
	b.queue = append(b.queue, q)
	b.mu.Unlock()
	select {
	case <-q.done:
	case <-ctx.Done():
		return nil, ctx.Err() // The question is asked all the same: it may be, like any that was sent.
	}
	if q.err != nil {
		return nil, q.err
	}
	return q.res, decodeError(q.res.Error)
}

// next ends a call: another begins if questions have come meanwhile.
func (b *statusBatcher) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), maxStatusBatch)
	if n == 0 {
		b.calls--
		return
	}
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	go b.send(batch)
}

// send asks for several, whose askers may be gone: the timeout is the request's own.
func (b *statusBatcher) send(batch []*statusQuestion) {
	defer b.next()
	req := &kvpb.CheckTxnStatusesRequest{Requests: make([]*kvpb.CheckTxnStatusRequest, len(batch))}
	for i, q := range batch {
		req.Requests[i] = q.req
	}
	res, err := call(context.Background(), b.shard.name, b.shard.opts, b.shard.client.CheckTxnStatuses, req)
	if err == nil && len(res.Responses) != len(batch) {
		err = b.shard.garbled("%d fates for %d transactions", len(res.Responses), len(batch))
	}
	for i, q := range batch {
		if q.err = err; err == nil {
			q.res = res.Responses[i]
		}
		close(q.done)
	}
}

// CheckTxnStatuses implements the service. Each question is answered as if it had been asked alone; those
// that have to wait for the log share its sync.
func (s *shardServer) CheckTxnStatuses(ctx context.Context, req *kvpb.CheckTxnStatusesRequest) (*kvpb.CheckTxnStatusesResponse, error) {
	res := &kvpb.CheckTxnStatusesResponse{Responses: make([]*kvpb.CheckTxnStatusResponse, len(req.Requests))}
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for i := range req.Requests {
		all.Go(func() {
			one, err := s.CheckTxnStatus(ctx, req.Requests[i])
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
				return
			}
			res.Responses[i] = one
		})
	}
	all.Wait()
	if failed != nil {
		return nil, failed
	}
	return res, nil
}
