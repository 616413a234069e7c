package pgwire

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/percodb/percodb/session"
)

// panickingHost fails as a bug in a session would.
type panickingHost struct{}

func (panickingHost) Open(context.Context, *Conn, map[string]string) (*session.Session, error) {
	panic("a bug")
}
func (panickingHost) Closed(*session.Session) {}
func (panickingHost) DatabaseName(_ context.Context, name string) (string, error) {
	return name, nil
}
func (panickingHost) Cancel(session.CancelKey) bool { return false }

// Goal: a panic ends its connection with XX000 and an id that the log explains, even when it left a
// message half written.
func TestPanicEndsConnectionOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	client, server := net.Pipe()
	defer client.Close()
	var logged strings.Builder
	c := New(server, trusting(t), panickingHost{}, nil, slog.New(slog.NewTextHandler(&logged, nil)))
	if err := c.w.Complete(session.Tag{Verb: "whole", Rows: -1}); err != nil {
		t.Fatal(err)
	}
	c.w.begin('D') // The message that the panic interrupts.
	done := make(chan struct{})
	go func() {
		c.Serve(context.Background())
		close(done)
	}()
	f := pgproto3.NewFrontend(client, client)
	f.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "postgres"}})
	if err := f.Flush(); err != nil {
		t.Fatal(err)
	}
	if m, err := f.Receive(); err != nil {
		t.Fatal(err)
	} else if _, ok := m.(*pgproto3.CommandComplete); !ok {
		t.Fatalf("first message is %T", m)
	}
	m, err := f.Receive()
	if err != nil {
		t.Fatal(err)
	}
	e, ok := m.(*pgproto3.ErrorResponse)
	if !ok || e.Severity != "FATAL" || e.Code != "XX000" {
		t.Fatalf("got %+v", m)
	}
	if _, err := f.Receive(); err == nil {
		t.Error("the connection goes on")
	}
	<-done
	if id := strings.TrimPrefix(e.Message, "internal error "); !strings.Contains(logged.String(), "id="+id) {
		t.Errorf("id %q is not in the log: %s", id, logged.String())
	}
}
