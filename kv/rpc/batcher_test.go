package rpc

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// fateShard knows fates: even transactions have committed just after they began, odd ones are missing.
type fateShard struct {
	kv.Shard
	gate chan struct{}
}

func (s *fateShard) CheckTxnStatus(_ context.Context, req *kv.CheckTxnStatusRequest) (mvcc.TxnStatus, error) {
	<-s.gate
	if req.StartTS%2 == 1 {
		return mvcc.TxnStatus{}, &mvcc.TxnNotFoundError{StartTS: req.StartTS}
	}
	return mvcc.TxnStatus{CommitTS: req.StartTS + 1}, nil
}

func (s *fateShard) CheckSecondaryLocks(_ context.Context, req *kv.CheckSecondaryLocksRequest) (mvcc.SecondaryStatus, error) {
	<-s.gate
	if req.StartTS%2 == 1 {
		return mvcc.SecondaryStatus{}, &mvcc.TxnNotFoundError{StartTS: req.StartTS}
	}
	return mvcc.SecondaryStatus{CommitTS: req.StartTS + 1}, nil
}

// Goal: questions that are put together get their own answers and errors each, and an asker who leaves
// takes nobody's answer away. Method: many at once, held up by the shard until all have been asked.
func TestQuestionsAreAskedTogether(t *testing.T) {
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{})
	server := tsorpc.NewGRPCServer()
	RegisterShard(server, &fateShard{gate: gate})
	go server.Serve(l)
	defer server.Stop()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	shard := NewShard(conn, "test", ClientOptions{})
	const askers = 300
	impatient, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range tso.Timestamp(askers) {
		all.Go(func() {
			ctx, startTS := t.Context(), 1000+i
			if i%10 == 9 {
				ctx = impatient
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
	close(gate)
	all.Wait()
}
