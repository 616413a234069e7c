package rpc

import (
	"context"
	"sync"

	"github.com/percodb/percodb/kv/rpc/kvpb"
)

const (
	// maxCallsTogether bounds the requests of one kind about transactions' fates under way to one shard.
	// One more is put together with others that come meanwhile: a reader who has met the locks of a
	// thousand dead clients asks a few times, not a thousand.
	maxCallsTogether = 4
	// maxTogether bounds the questions in one request.
	maxTogether = 1024
)

// together sends questions of one kind, several in a request where there are many. Safe for concurrent
// use.
type together[Req any, Res answer] struct {
	one  func(ctx context.Context, q Req) (Res, error)
	many func(ctx context.Context, qs []Req) ([]Res, error)

	mu    sync.Mutex
	calls int // under way
	queue []*question[Req, Res]
}

// question is one that waits for others' answers to come, and then for its own.
type question[Req any, Res answer] struct {
	req  Req
	done chan struct{}
	res  Res
	err  error
}

// ask returns the answer to req.
func (b *together[Req, Res]) ask(ctx context.Context, req Req) (Res, error) {
	b.mu.Lock()
	if b.calls < maxCallsTogether {
		b.calls++
		b.mu.Unlock()
		defer b.next()
		return b.one(ctx, req)
	}
	q := &question[Req, Res]{req: req, done: make(chan struct{})}
	b.queue = append(b.queue, q)
	b.mu.Unlock()
	var none Res
	select {
	case <-q.done:
	case <-ctx.Done():
		return none, ctx.Err() // The question is asked all the same: it may be, like any that was sent.
	}
	if q.err != nil {
		return none, q.err
	}
	return q.res, decodeError(q.res.GetError())
}

// next ends a call: another begins if questions have come meanwhile.
func (b *together[Req, Res]) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), maxTogether)
	if n == 0 {
		b.calls--
		return
	}
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	go b.send(batch)
}

// send asks for several, whose askers may be gone: the timeout is the request's own.
func (b *together[Req, Res]) send(batch []*question[Req, Res]) {
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

// askTogether makes the two kinds of questions of a shard.
func (s *Shard) askTogether() {
	s.statuses.one = func(ctx context.Context, q *kvpb.CheckTxnStatusRequest) (*kvpb.CheckTxnStatusResponse, error) {
		return call(ctx, s.name, s.opts, s.client.CheckTxnStatus, q)
	}
	s.statuses.many = func(ctx context.Context, qs []*kvpb.CheckTxnStatusRequest) ([]*kvpb.CheckTxnStatusResponse, error) {
		res, err := call(ctx, s.name, s.opts, s.client.CheckTxnStatuses, &kvpb.CheckTxnStatusesRequest{Requests: qs})
		return asMany(s, len(qs), res.GetResponses(), err)
	}
	s.secondaries.one = func(ctx context.Context, q *kvpb.CheckSecondaryLocksRequest) (*kvpb.CheckSecondaryLocksResponse, error) {
		return call(ctx, s.name, s.opts, s.client.CheckSecondaryLocks, q)
	}
	s.secondaries.many = func(ctx context.Context, qs []*kvpb.CheckSecondaryLocksRequest) ([]*kvpb.CheckSecondaryLocksResponse, error) {
		res, err := call(ctx, s.name, s.opts, s.client.CheckSecondaryLocksOfMany, &kvpb.CheckSecondaryLocksOfManyRequest{Requests: qs})
		return asMany(s, len(qs), res.GetResponses(), err)
	}
}

// asMany refuses an answer to another number of questions.
func asMany[Res any](s *Shard, asked int, res []Res, err error) ([]Res, error) {
	if err == nil && len(res) != asked {
		err = s.garbled("%d answers for %d transactions", len(res), asked)
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

// answerAll answers each question as if it had been asked alone; those that have to wait for the log share
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
