package rpc

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// statusShard answers status checks: even transactions have committed just after they began, odd ones are missing.
type statusShard struct {
	kv.Shard
	gate chan struct{}
}

func (s *statusShard) CheckTxnStatus(_ context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	<-s.gate
	if req.StartTS%2 == 1 {
		return mvcc.TxnStatus{}, &mvcc.TxnNotFoundError{StartTS: req.StartTS}
	}
	return mvcc.TxnStatus{CommitTS: req.StartTS + 1}, nil
}

func (s *statusShard) CheckSecondaryLocks(_ context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	<-s.gate
	if req.StartTS%2 == 1 {
		return mvcc.SecondaryStatus{}, &mvcc.TxnNotFoundError{StartTS: req.StartTS}
	}
	return mvcc.SecondaryStatus{CommitTS: req.StartTS + 1}, nil
}

// Goal: status checks that are sent in one request get an answer or an error each, and a caller that gives up takes no other's
// answer away. Method: many at once, which the shard blocks until all have been sent.
func TestBatchedStatusChecks(t *testing.T) {
	t.Run("status", func(t *testing.T) {
		testBatching(t, func(ctx context.Context, s *Shard, startTS tso.Timestamp) (tso.Timestamp, error) {
			st, err := s.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{StartTS: startTS, Primary: []byte("p")})
			return st.CommitTS, err
		}, func(s *Shard) int {
			s.statuses.mu.Lock()
			defer s.statuses.mu.Unlock()
			return len(s.statuses.queue)
		})
	})
	t.Run("secondaries", func(t *testing.T) {
		testBatching(t, func(ctx context.Context, s *Shard, startTS tso.Timestamp) (tso.Timestamp, error) {
			st, err := s.CheckSecondaryLocks(ctx, &kv.CheckSecondaryLocksRequest{StartTS: startTS, Keys: [][]byte{[]byte("s")}})
			return st.CommitTS, err
		}, func(s *Shard) int {
			s.secondaries.mu.Lock()
			defer s.secondaries.mu.Unlock()
			return len(s.secondaries.queue)
		})
	})
}

func testBatching(t *testing.T, ask func(context.Context, *Shard, tso.Timestamp) (tso.Timestamp, error), waiting func(*Shard) int) {
	gate := make(chan struct{})
	conn, _ := serveShard(t, &statusShard{gate: gate})
	shard := NewShard(conn, "test", ClientOptions{})
	const askers = 300
	impatient, leave := context.WithCancel(t.Context())
	var all, leaving sync.WaitGroup
	leaving.Add(askers / 10)
	for i := range tso.Timestamp(askers) {
		all.Go(func() {
			ctx, startTS := t.Context(), 1000+i
			if i%10 == 9 {
				ctx = impatient
				defer leaving.Done()
			}
			commitTS, err := ask(ctx, shard, startTS)
			var missing *mvcc.TxnNotFoundError
			switch {
			case i%10 == 9:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%d left and got %d, %v", startTS, commitTS, err)
				}
			case startTS%2 == 1:
				if !errors.As(err, &missing) || missing.StartTS != startTS {
					t.Errorf("%d: %d, %v", startTS, commitTS, err)
				}
			case err != nil || commitTS != startTS+1:
				t.Errorf("%d: %d, %v", startTS, commitTS, err)
			}
		})
	}
	for waiting(shard) < askers-maxStatusCalls {
		runtime.Gosched()
	}
	leave()
	leaving.Wait() // before there are answers
	close(gate)
	all.Wait()
}
