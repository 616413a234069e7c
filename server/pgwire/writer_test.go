package pgwire

import (
	"context"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
	"go.uber.org/goleak"

	"github.com/percodb/percodb/session"
)

// Goal: what is held can be made anew without losing the answers to later messages, and a flush ends
// the holding. Method: the buffer itself.
func TestHold(t *testing.T) {
	complete := func(w *writer, verb string) { _ = w.Complete(session.Tag{Verb: verb, Rows: -1}) }
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	w := newWriter(server, nil, nil)
	complete(w, "before")
	w.Hold()
	complete(w, "first")
	w.endHeld()
	complete(w, "later")
	if !w.Rewind() {
		t.Fatal("nothing held")
	}
	w.Hold()
	complete(w, "second")
	if !w.Rewind() {
		t.Fatal("nothing held the second time")
	}
	w.Hold()
	complete(w, "third")
	w.Release()
	w.restoreAfter(false)
	if got := tags(t, w.buf); got != "before third later" {
		t.Errorf("buffer: %s", got)
	}
	w.Hold()
	complete(w, "lost")
	w.endHeld()
	complete(w, "lost, too")
	w.Rewind()
	w.restoreAfter(true)
	if got := tags(t, w.buf); got != "before third later" {
		t.Errorf("buffer after an error: %s", got)
	}
	w.Hold()
	go func() { _, _ = io.Copy(io.Discard, client) }()
	if err := w.flush(); err != nil {
		t.Fatal(err)
	}
	if w.Rewind() {
		t.Error("what has left can be taken back")
	}
}

// tags lists the command tags of a buffer of whole messages.
func tags(t *testing.T, buf []byte) string {
	t.Helper()
	f := pgproto3.NewFrontend(strings.NewReader(string(buf)), io.Discard)
	var all []string
	for {
		m, err := f.Receive()
		if err != nil {
			return strings.Join(all, " ")
		}
		all = append(all, string(m.(*pgproto3.CommandComplete).CommandTag))
	}
}

// panickingHost fails as a bug in a session would.
type panickingHost struct{}

func (panickingHost) Open(context.Context, *Conn, map[string]string) (*session.Session, error) {
	panic("a bug")
}
func (panickingHost) Closed(*session.Session)  {}
func (panickingHost) Cancel(session.CancelKey) {}

// Goal: a panic ends its connection with XX000 and an id that the log explains, even when it left a
// message half written.
func TestPanicEndsConnectionOnly(t *testing.T) {
	defer goleak.VerifyNone(t)
	client, server := net.Pipe()
	defer client.Close()
	var logged strings.Builder
	c := New(server, panickingHost{}, nil, slog.New(slog.NewTextHandler(&logged, nil)))
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
	f.Send(&pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{"user": "u"}})
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
