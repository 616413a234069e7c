package waitgraph

import (
	"testing"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// Goal: a watched wait is in the graph until it is stopped, and is told when it closes a cycle. Method: two waits for each other.
func TestWatch(t *testing.T) {
	g := NewLocal()
	holders := func(of ...tso.Timestamp) func() []tso.Timestamp { return func() []tso.Timestamp { return of } }
	first, stop := Watch(t.Context(), g, 1, []byte("k"), holders(2, 3))
	for g.Len() < 2 {
		time.Sleep(time.Millisecond)
	}
	second, stopSecond := Watch(t.Context(), g, 2, nil, holders(4, 1))
	defer stopSecond()
	if err := <-second; errkind.Of(err) != errkind.Deadlock {
		t.Errorf("the second wait: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("the first wait: %v", err)
	default:
	}
	for stop(); g.Len() > 0; { // also the edges of the wait that was refused
		time.Sleep(time.Millisecond)
	}
}
