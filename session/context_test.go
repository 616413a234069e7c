package session

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Goal: an interruption reaches the statement that runs, with its cause, and no other one. Method: a table of what happens
// before, during and after a statement.
func TestInterrupts(t *testing.T) {
	for _, c := range []struct {
		name           string
		before, during func(*interrupts, context.CancelFunc)
		timeout        time.Duration
		want, next     error // of the statement, of the one behind it
	}{
		{name: "nothing"},
		{name: "cancel", during: func(in *interrupts, _ context.CancelFunc) { in.cancel(errCanceled) }, want: errCanceled},
		{name: "cancel between statements", before: func(in *interrupts, _ context.CancelFunc) { in.cancel(errCanceled) }},
		{name: "the first cause counts", during: func(in *interrupts, _ context.CancelFunc) { in.cancel(errCanceled); in.cancel(errStatementTimeout) }, want: errCanceled},
		{name: "timeout", timeout: time.Nanosecond, want: errStatementTimeout},
		{name: "terminate", during: func(in *interrupts, _ context.CancelFunc) { in.terminate(errShutdown) }, want: errShutdown, next: errShutdown},
		{name: "terminate between statements", before: func(in *interrupts, _ context.CancelFunc) { in.terminate(errShutdown) }, want: errShutdown, next: errShutdown},
		{name: "the connection's context ends", during: func(_ *interrupts, end context.CancelFunc) { end() }, want: errShutdown, next: errShutdown},
	} {
		t.Run(c.name, func(t *testing.T) {
			parent, end := context.WithCancel(context.Background())
			defer end()
			in := newInterrupts(parent)
			defer in.close()
			if c.before != nil {
				in.begin(0)
				in.end()
				c.before(in, end)
			}
			ctx := in.begin(c.timeout)
			if !in.running() {
				t.Error("no statement runs")
			}
			if c.during != nil {
				c.during(in, end)
			}
			if c.want != nil {
				<-ctx.Done()
			}
			if got := interruption(ctx); !errors.Is(got, c.want) {
				t.Errorf("interrupted by %v, want %v", got, c.want)
			}
			in.end()
			ctx = in.begin(0)
			if got := interruption(ctx); !errors.Is(got, c.next) {
				t.Errorf("the next statement is interrupted by %v, want %v", got, c.next)
			}
			in.end()
		})
	}
}

// Goal: each statement of a text has the timeout that is set when it begins, as in PostgreSQL.
func TestTimeoutsOfTexts(t *testing.T) {
	in := newInterrupts(context.Background())
	defer in.close()
	ctx := in.begin(time.Hour)
	in.next(0)
	in.mu.Lock()
	if !in.mu.deadline.IsZero() {
		t.Error("a statement without timeout has the one of the statement before it")
	}
	in.mu.Unlock()
	in.next(time.Nanosecond)
	<-ctx.Done()
	if got := interruption(ctx); !errors.Is(got, errStatementTimeout) {
		t.Errorf("interrupted by %v", got)
	}
}

// Goal: a statement costs no context of its own unless the one before it was interrupted.
func TestInterruptsAllocateNothing(t *testing.T) {
	in := newInterrupts(context.Background())
	defer in.close()
	if n := testing.AllocsPerRun(100, func() {
		in.begin(0)
		in.end()
	}); n != 0 {
		t.Errorf("%v allocations for each statement", n)
	}
}

// Goal: the client is sent PostgreSQL's SQLSTATE for each cause, and its session goes on.
func TestInterruptedStatements(t *testing.T) {
	s := newTestServer(t)
	c := s.connect()
	c.must("set statement_timeout = '500ms'")
	c.transcript(`
		select count(*) from generate_series(1, 1000000000) → columns count; error 57014; I
		set statement_timeout = 0 → SET; I
		select 1 → columns ?column?; row 1; SELECT 1; I
		set statement_timeout = '1s' → SET; I
		set statement_timeout = 0; select pg_sleep(1.5) is null → SET; columns ?column?; row f; SELECT 1; I
	`)
	done := make(chan string)
	go func() { done <- c.query("select count(*) from generate_series(1, 1000000000)") }()
	for !c.interrupts.running() {
		time.Sleep(time.Millisecond)
	}
	c.Cancel()
	if got := <-done; got != "columns count; error 57014; I" {
		t.Error(got)
	}
	c.Terminate()
	if got := c.query("select count(*) from generate_series(1, 1000000000)"); got != "columns count; error 57P01; I" {
		t.Error(got)
	}
}
