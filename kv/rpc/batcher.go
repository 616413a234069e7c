package rpc

import (
	"context"
	"sync"

	"github.com/percodb/percodb/kv/rpc/kvpb"
)

const (
	// maxStatusCalls bounds the concurrent status checks of one kind to one shard. Further ones are batched: a
	// reader that encounters the locks of a thousand crashed clients sends a few requests, not a thousand.
	maxStatusCalls = 4
	// maxBatchedRequests bounds the status checks in one request.
	maxBatchedRequests = 1024
)

// batcher sends requests of one kind, and batches them while maxStatusCalls are in flight. Safe for concurrent use.
type batcher[Req any, Res answer] struct {
	one  func(ctx context.Context, q Req) (Res, error)
	many func(ctx context.Context, qs []Req) ([]Res, error)

	mu    sync.Mutex
	calls int // in flight
	queue []*batchedRequest[Req, Res]
}

// batchedRequest is a request that waits in the queue, and then for its response.
type batchedRequest[Req any, Res answer] struct {
	req  Req
	done chan struct{}
	res  Res
	err  error
}

// ask returns the response to req.
func (b *batcher[Req, Res]) ask(ctx context.Context, req Req) (Res, error) {
	b.mu.Lock()
	if b.calls < maxStatusCalls {
		b.calls++
		b.mu.Unlock()
		defer b.next()
		return b.one(ctx, req)
	}
	q := &batchedRequest[Req, Res]{req: req, done: make(chan struct{})}
	b.queue = append(b.queue, q)
	b.mu.Unlock()
	var none Res
	select {
	case <-q.done:
	case <-ctx.Done():
		return none, ctx.Err() // The request is sent nevertheless, which is harmless.
	}
	if q.err != nil {
		return none, q.err
	}
	return q.res, decodeError(q.res.GetError())
}

// next ends a call and starts another one if requests are queued.
func (b *batcher[Req, Res]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), maxBatchedRequests)
	if n == 0 {
		b.calls--
		return
	}
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	go b.send(batch)
}

// send sends a batch. Its callers may have given up, so it uses a context without their deadlines.
func (b *batcher[Req, Res]) send(batch []*batchedRequest[Req, Res]) {
	defer b.next()
	reqs := make([]Req, len(batch))
	for i, q := range batch {
		reqs[i] = q.req
	}
	res, err := b.many(context.Background(), reqs)
	for i, q := range batch {
		if q.err = err; err == nil {
			q.res = res[i]
		}
		close(q.done)
	}
}

// initBatchers sets the functions of the batchers of a shard.
func (s *Shard) initBatchers() {
	s.statuses.one = func(ctx context.Context, q *kvpb.CheckTxnStatusRequest) (*kvpb.CheckTxnStatusResponse, error) {
		return call(ctx, s.name, s.opts, s.client.CheckTxnStatus, q)
	}
	s.statuses.many = func(ctx context.Context, qs []*kvpb.CheckTxnStatusRequest) ([]*kvpb.CheckTxnStatusResponse, error) {
		res, err := call(ctx, s.name, s.opts, s.client.CheckTxnStatuses, &kvpb.CheckTxnStatusesRequest{Requests: qs})
		return checkCount(s, len(qs), res.GetResponses(), err)
	}
	s.secondaries.one = func(ctx context.Context, q *kvpb.CheckSecondaryLocksRequest) (*kvpb.CheckSecondaryLocksResponse, error) {
		return call(ctx, s.name, s.opts, s.client.CheckSecondaryLocks, q)
	}
	s.secondaries.many = func(ctx context.Context, qs []*kvpb.CheckSecondaryLocksRequest) ([]*kvpb.CheckSecondaryLocksResponse, error) {
		res, err := call(ctx, s.name, s.opts, s.client.CheckSecondaryLocksOfMany, &kvpb.CheckSecondaryLocksOfManyRequest{Requests: qs})
		return checkCount(s, len(qs), res.GetResponses(), err)
	}
}

// checkCount refuses a response with another number of results.
func checkCount[Res any](s *Shard, asked int, res []Res, err error) ([]Res, error) {
	if err == nil && len(res) != asked {
		err = s.malformedResponse("%d answers for %d transactions", len(res), asked)
	}
	return res, err
}

// CheckTxnStatuses implements the service.
func (s *shardServer) CheckTxnStatuses(ctx context.Context, req *kvpb.CheckTxnStatusesRequest) (*kvpb.CheckTxnStatusesResponse, error) {
	res, err := answerAll(ctx, req.Requests, s.CheckTxnStatus)
	if err != nil {
		return nil, err
	}
	return &kvpb.CheckTxnStatusesResponse{Responses: res}, nil
}

// CheckSecondaryLocksOfMany implements the service.
func (s *shardServer) CheckSecondaryLocksOfMany(ctx context.Context, req *kvpb.CheckSecondaryLocksOfManyRequest) (*kvpb.CheckSecondaryLocksOfManyResponse, error) {
	res, err := answerAll(ctx, req.Requests, s.CheckSecondaryLocks)
	if err != nil {
		return nil, err
	}
	return &kvpb.CheckSecondaryLocksOfManyResponse{Responses: res}, nil
}

// answerAll executes each request of a batch as if it had been sent separately; those that have to wait for the log share
// its sync.
func answerAll[Req, Res any](ctx context.Context, reqs []Req, answer func(context.Context, Req) (Res, error)) ([]Res, error) {
	res := make([]Res, len(reqs))
	var all sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for i := range reqs {
		all.Go(func() {
			one, err := answer(ctx, reqs[i])
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
				return
			}
			res[i] = one
		})
	}
	all.Wait()
	return res, failed
}
