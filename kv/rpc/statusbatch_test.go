package rpc

import (
	"context"
	"errors"
	"net"
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

// Goal: questions that are put together get their own answers and errors each, and an asker who leaves
// takes nobody's answer away. Method: many at once, held up by the shard until all have been asked.
func TestQuestionsAreAskedTogether(t *testing.T) {
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
			st, err := shard.CheckTxnStatus(ctx, &kv.CheckTxnStatusRequest{StartTS: startTS, Primary: []byte("p")})
			var missing *mvcc.TxnNotFoundError
			switch {
			case i%10 == 9:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%d left and got %+v, %v", startTS, st, err)
				}
			case startTS%2 == 1:
				if !errors.As(err, &missing) || missing.StartTS != startTS {
					t.Errorf("%d: %+v, %v", startTS, st, err)
				}
			case err != nil || st.CommitTS != startTS+1:
				t.Errorf("%d: %+v, %v", startTS, st, err)
			}
		})
	}
	for queued := 0; queued < askers-maxStatusCalls; {
		shard.statuses.mu.Lock()
		queued = len(shard.statuses.queue)
		shard.statuses.mu.Unlock()
	}
	leave()
	close(gate)
	all.Wait()
}
