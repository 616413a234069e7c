package pgwire

import (
	"context"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/auth"
	"github.com/percodb/percodb/internal/storetest"
	"github.com/percodb/percodb/session"
)

// maxFrames bounds the calls between the connection's loop and the shard's interface for a prepared UPDATE of one row.
const maxFrames = 15

// Goal: a statement passes few calls on its way from the socket to the store. Method: a shard that records the stack of
// each Get; the stack of a prepared UPDATE of one row is counted from Conn.Serve to the shard.
func TestFramesFromSocketToShard(t *testing.T) {
	s := newStackServer(t)
	f := s.connect(t)
	exchange(t, f, &pgproto3.Query{String: "create table t (id int primary key, n int)"})
	exchange(t, f, &pgproto3.Query{String: "insert into t values (1, 0)"})
	exchange(t, f, &pgproto3.Parse{Name: "set", Query: "update t set n = n + $1 where id = $2"}, &pgproto3.Sync{})
	update := []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "set", Parameters: [][]byte{[]byte("1"), []byte("1")}}, &pgproto3.Execute{}, &pgproto3.Sync{}}
	exchange(t, f, update...)
	s.stack = nil
	exchange(t, f, update...)
	if len(s.stack) == 0 {
		t.Fatal("no Get was seen")
	}
	t.Logf("%d frames:\n%s", len(s.stack), strings.Join(s.stack, "\n"))
	if len(s.stack) > maxFrames {
		t.Errorf("%d frames from the socket to the shard, at most %d are allowed", len(s.stack), maxFrames)
	}
}

// stackServer is a Host over a store in memory whose shard records the last Get's stack, from Serve on.
type stackServer struct {
	deps  session.Deps
	stack []string
}

func newStackServer(t *testing.T) *stackServer {
	t.Helper()
	s := &stackServer{}
	store := storetest.Open(t, func(_ context.Context, req any) error {
		if _, isGet := req.([]byte); isGet {
			s.record()
		}
		return nil
	})
	s.deps = session.Deps{
		DB: store.DB, Catalog: store.Catalog, Router: store.Router, Oracle: store.Oracle, Plans: session.NewPlanCache(),
		Metrics: session.NewMetrics(nil), Logger: slog.New(slog.DiscardHandler), Version: "15.8",
	}
	return s
}

// record keeps the stack of a Get that a connection has caused, from the caller of the shard on.
func (s *stackServer) record() {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	var stack []string
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if !strings.Contains(f.Function, "executor.(*checked)") { // of the race detector's build, and with the tag invariants
			stack = append(stack, strings.TrimPrefix(f.Function, "github.com/percodb/percodb/"))
		}
		if strings.HasSuffix(f.Function, "(*Conn).Serve") {
			s.stack = stack
			return
		}
	}
}

func (s *stackServer) Open(ctx context.Context, c *Conn, startup map[string]string) (*session.Session, error) {
	return session.New(ctx, s.deps, 1, c.Client(), startup)
}
func (s *stackServer) Closed(*session.Session) {}
func (s *stackServer) DatabaseName(_ context.Context, name string) (string, error) {
	return name, nil
}
func (s *stackServer) Cancel(session.CancelKey) bool { return false }

// trusting makes a gate that lets everyone in.
func trusting(t *testing.T) *auth.Gate {
	gate, err := auth.NewGate(auth.Options{Rules: auth.TrustEverything})
	if err != nil {
		t.Fatal(err)
	}
	return gate
}

// connect serves a connection and reads the greeting.
func (s *stackServer) connect(t *testing.T) *pgproto3.Frontend {
	t.Helper()
	client, server := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		New(server, trusting(t), s, nil, slog.New(slog.DiscardHandler)).Serve(context.Background())
	}()
	t.Cleanup(func() {
		client.Close()
		<-done
	})
	f := pgproto3.NewFrontend(client, client)
	exchange(t, f, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "postgres"}})
	return f
}

// exchange sends messages and reads to the next ReadyForQuery; an ErrorResponse fails the test.
func exchange(t *testing.T, f *pgproto3.Frontend, messages ...pgproto3.FrontendMessage) {
	t.Helper()
	for _, m := range messages {
		f.Send(m)
	}
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	for {
		switch m, err := f.Receive(); m := m.(type) {
		case *pgproto3.ErrorResponse:
			t.Fatalf("%s: %s", m.Code, m.Message)
		case *pgproto3.ReadyForQuery:
			return
		case nil:
			if err == io.EOF {
				t.Fatal("the connection has ended")
			}
			t.Fatal(err)
		}
	}
}
