package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/percodb/percodb/internal/memory"
)

const patience = time.Minute

func message(channel, payload string) Message {
	return Message{PID: 1, Channel: channel, Payload: payload}
}

// listener is one whose end is recorded.
func listener(t *testing.T, h *Hub, channels ...string) (*Listener, <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	l := h.NewListener(func(why error) { ended <- why })
	t.Cleanup(l.Close)
	if err := l.Listen(context.Background(), channels); err != nil {
		t.Fatal(err)
	}
	return l, ended
}

func endOf(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case why := <-ended:
		return why
	case <-time.After(patience):
		t.Fatal("the listener was not ended")
		return nil
	}
}

func TestDeliver(t *testing.T) {
	// Goal: a message reaches the listeners of its channel, those of others are left alone.
	h := New(Options{})
	a, _ := listener(t, h, "x", "y")
	b, _ := listener(t, h, "y")
	h.Deliver([]Message{message("x", "1"), message("y", "2"), message("z", "3")})
	if got := fmt.Sprint(a.Take(), b.Take()); got != "[{1 x 1} {1 y 2}] [{1 y 2}]" {
		t.Error(got)
	}
	a.Unlisten([]string{"y"})
	h.Deliver([]Message{message("x", "4"), message("y", "5")})
	if got := fmt.Sprint(a.Take(), b.Take()); got != "[{1 x 4}] [{1 y 5}]" {
		t.Error(got)
	}
	b.Close()
	h.Deliver([]Message{message("y", "6")})
	if got := b.Take(); got != nil {
		t.Errorf("after Close: %v", got)
	}
}

func TestAwait(t *testing.T) {
	// Goal: wake is called once for an empty queue, and never after StopAwaiting.
	h := New(Options{})
	l, _ := listener(t, h, "x")
	woken := 0
	if !l.Await(func() { woken++ }) {
		t.Fatal("the queue is empty")
	}
	h.Deliver([]Message{message("x", "1"), message("x", "2")})
	if woken != 1 || !l.StopAwaiting() {
		t.Errorf("woken %d times", woken)
	}
	if l.Await(func() { woken++ }) {
		t.Error("the queue is not empty")
	}
	l.Take()
	if !l.Await(func() { woken++ }) || l.StopAwaiting() {
		t.Error("nothing has arrived")
	}
	h.Deliver([]Message{message("x", "3")})
	if woken != 1 {
		t.Errorf("woken %d times", woken)
	}
}

func TestFullQueue(t *testing.T) {
	// Goal: a listener is ended, once, when a message does not fit in its queue or in the memory; it receives nothing later.
	m := message("x", "payload")
	for name, opts := range map[string]Options{
		"queue":  {QueueBytes: 3 * m.Size()},
		"memory": {Memory: memory.NewPool("notifications", 3*m.Size())},
	} {
		h := New(opts)
		l, ended := listener(t, h, "x")
		for range 3 {
			h.Deliver([]Message{m})
		}
		if got := h.Usage(); name == "queue" && got != 1 {
			t.Errorf("%s: usage %v", name, got)
		}
		if got := len(l.Take()); got != 3 {
			t.Fatalf("%s: %d messages", name, got)
		}
		for range 5 {
			h.Deliver([]Message{m})
		}
		if why := endOf(t, ended); !errors.Is(why, ErrQueueFull) {
			t.Errorf("%s: %v", name, why)
		}
		h.Deliver([]Message{m})
		if got := l.Take(); got != nil {
			t.Errorf("%s: %d messages after the end", name, len(got))
		}
		if !l.Await(func() { t.Error("woken") }) {
			t.Errorf("%s: a queue that has ended has something", name)
		}
	}
}

func TestLose(t *testing.T) {
	h := New(Options{})
	_, x := listener(t, h, "x")
	y, yEnded := listener(t, h, "y")
	h.Lose([]string{"x", "z"})
	if why := endOf(t, x); !errors.Is(why, ErrLost) {
		t.Error(why)
	}
	h.Deliver([]Message{message("y", "1")})
	if len(y.Take()) != 1 {
		t.Error("the listener of another channel receives nothing")
	}
	h.LoseAll()
	if why := endOf(t, yEnded); !errors.Is(why, ErrLost) {
		t.Error(why)
	}
}

func TestManySendersAndListeners(t *testing.T) {
	// Goal: under concurrency (run it with -race) every listener receives the messages of each sender in order, while others
	// come and go.
	const senders, listeners, messages = 4, 8, 500
	h := New(Options{})
	ctx := context.Background()
	var sending, receiving sync.WaitGroup
	for range listeners {
		l, _ := listener(t, h, "x")
		receiving.Go(func() {
			next := map[uint32]string{}
			arrived := make(chan struct{}, 1)
			for received := 0; received < senders*messages; {
				if l.Await(func() { arrived <- struct{}{} }) {
					<-arrived
				}
				for _, m := range l.Take() {
					if want := next[m.PID]; want != "" && want != m.Payload {
						t.Errorf("%s of %d, want %s", m.Payload, m.PID, want)
						return
					}
					var n int
					if _, err := fmt.Sscan(m.Payload, &n); err != nil {
						t.Error(err)
						return
					}
					next[m.PID] = fmt.Sprint(n + 1)
					received++
				}
			}
		})
	}
	for s := range senders {
		sending.Go(func() {
			for i := range messages {
				other := h.NewListener(func(why error) { t.Error(why) })
				if err := other.Listen(ctx, []string{"x", fmt.Sprint(s, i)}); err != nil {
					t.Error(err)
				}
				a, err := h.Announce(ctx, []string{"x"})
				if err != nil {
					t.Error(err)
					return
				}
				a.Publish([]Message{{PID: uint32(s), Channel: "x", Payload: fmt.Sprint(i)}})
				other.Close()
			}
		})
	}
	sending.Wait()
	receiving.Wait()
	h.listeners.all(func(l *Listener) {
		if len(l.channels) != 1 {
			t.Error("a listener that was closed is in the index")
		}
	})
}
