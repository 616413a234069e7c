package notify

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newExchange(t *testing.T, opts ExchangeOptions) *Exchange {
	x := NewExchange(opts)
	t.Cleanup(x.Close)
	return x
}

func join(t *testing.T, x *Exchange, h Hello) *Member {
	t.Helper()
	m, err := x.Join(h)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	return m
}

// events are those that wait for a member.
func events(m *Member) string {
	text := ""
	for _, e := range m.queue.take() {
		switch {
		case e.Ack != 0:
			text += fmt.Sprintf("ack %d; ", e.Ack)
		case e.Lost != "":
			text += fmt.Sprintf("lost %s; ", e.Lost)
		case e.LostAll:
			text += "lost all; "
		case e.Ended:
			text += "ended; "
		case e.LockHint != nil:
			text += fmt.Sprintf("hint of %d: %d %s %v; ", e.LockHint.Process, e.LockHint.Holder, e.LockHint.Key, e.LockHint.Released)
		default:
			text += fmt.Sprintf("%s %s; ", e.Message.Channel, e.Message.Payload)
		}
	}
	return text
}

func expectEvents(t *testing.T, m *Member, want string) {
	t.Helper()
	if got := events(m); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestExchange(t *testing.T) {
	// Goal: messages reach the processes that have subscribed, but for the sender's.
	x := newExchange(t, ExchangeOptions{})
	a, b := join(t, x, Hello{Process: 1, Channels: []string{"x"}}), join(t, x, Hello{Process: 2})
	b.Subscribe(1, []string{"x", "y"})
	expectEvents(t, b, "ack 1; ")
	a.Announce(1, []string{"x", "y"})
	a.Publish(1, []Message{message("x", "1"), message("y", "2"), message("z", "3")})
	expectEvents(t, a, "ack 1; ack 1; ")
	expectEvents(t, b, "x 1; y 2; ")
	b.Unsubscribe([]string{"y"})
	a.Announce(2, []string{"x", "y"})
	a.Publish(2, []Message{message("y", "4"), message("x", "5")})
	expectEvents(t, b, "x 5; ")
	b.Announce(1, []string{"x"})
	b.Publish(1, []Message{message("x", "6")})
	expectEvents(t, a, "ack 2; ack 2; x 6; ")
}

func TestSenderDisappears(t *testing.T) {
	// Goal: when a process disappears, the listeners of the channels that it has announced are ended, and no others; an
	// announcement that was cancelled or published ends nobody.
	x := newExchange(t, ExchangeOptions{})
	a, b := join(t, x, Hello{Process: 1}), join(t, x, Hello{Process: 2, Channels: []string{"u", "v", "w", "x"}})
	for id, channel := range []string{"u", "v", "w", "y"} {
		a.Announce(uint64(id+1), []string{channel})
	}
	a.Cancel(1)
	a.Publish(2, []Message{message("v", "1")})
	a.Leave()
	expectEvents(t, b, "v 1; lost w; ")
	a.Publish(4, []Message{message("x", "late")})
	a.Leave()
	expectEvents(t, b, "")
}

func TestUnknownOutcome(t *testing.T) {
	x := newExchange(t, ExchangeOptions{})
	a, b := join(t, x, Hello{Process: 1}), join(t, x, Hello{Process: 2, Channels: []string{"x"}})
	a.Announce(7, []string{"x"})
	a.Lose(7)
	a.Leave()
	expectEvents(t, b, "lost x; ")
}

func TestProcessConnectsAgain(t *testing.T) {
	// Goal: a new connection of a process ends the earlier one before anything comes by the new one, what was lost meanwhile
	// ends listeners, and announcements that are open go on.
	x := newExchange(t, ExchangeOptions{})
	first, b := join(t, x, Hello{Process: 1}), join(t, x, Hello{Process: 2, Channels: []string{"u", "v", "w"}})
	first.Announce(1, []string{"u"})
	first.Announce(2, []string{"v"})
	second := join(t, x, Hello{Process: 1, Announced: map[uint64][]string{2: {"v"}}, Lost: []string{"w"}})
	select {
	case <-first.done:
	default:
		t.Error("the earlier connection goes on")
	}
	if got := events(b); got != "lost u; lost v; lost w; " && got != "lost v; lost u; lost w; " {
		t.Error(got)
	}
	first.Leave()
	second.Publish(2, []Message{message("v", "1")})
	expectEvents(t, b, "v 1; ")
	join(t, x, Hello{Process: 3, LostAll: true})
	expectEvents(t, b, "lost all; ")
	expectEvents(t, second, "ack 2; lost all; ")
}

func TestSlowProcess(t *testing.T) {
	// Goal: a process that does not take its events is disconnected; others are not held up.
	m := message("x", "payload")
	x := newExchange(t, ExchangeOptions{MemberBytes: 2 * (m.Size() + eventBytes)})
	a, slow, quick := join(t, x, Hello{Process: 1}), join(t, x, Hello{Process: 2, Channels: []string{"x"}}), join(t, x, Hello{Process: 3, Channels: []string{"x"}})
	for i := range 3 {
		a.Announce(uint64(i+1), []string{"x"})
		a.Publish(uint64(i+1), []Message{m})
		events(a)
		expectEvents(t, quick, "x payload; ")
	}
	select {
	case <-slow.done:
	case <-time.After(patience):
		t.Error("the slow process goes on")
	}
	if got := slow.Next(); got != nil {
		t.Errorf("%d events are left", len(got))
	}
}

// Goal: a hint about a lock reaches the process that it is for and names its sender; hints for processes that are not connected are dropped, and so are those for a process that is
// slow, which stays connected and gets its notifications. Method: an exchange with a small queue.
func TestLockHints(t *testing.T) {
	m := message("x", "payload")
	x := newExchange(t, ExchangeOptions{MemberBytes: 40 * m.Size()})
	a, b := join(t, x, Hello{Process: 1}), join(t, x, Hello{Process: 2, Channels: []string{"x"}})
	hint := LockHint{Process: 2, Holder: 5, Key: []byte("k")}
	a.SendLockHint(hint)
	expectEvents(t, b, "hint of 1: 5 k false; ")
	b.SendLockHint(LockHint{Process: 1, Holder: 5, Key: []byte("k"), Released: true})
	expectEvents(t, a, "hint of 2: 5 k true; ")
	b.SendLockHint(LockHint{Process: 3})
	for range 1000 {
		a.SendLockHint(hint)
	}
	a.Announce(1, []string{"x"})
	a.Publish(1, []Message{m})
	hints, _ := strings.CutSuffix(events(b), "x payload; ")
	if n := strings.Count(hints, "hint"); n == 0 || n > 10 || strings.Contains(hints, "payload") {
		t.Errorf("%d hints: %s", n, hints)
	}
	select {
	case <-b.done:
		t.Error("the process was disconnected")
	default:
	}
	b.Leave()
	a.SendLockHint(hint)
}

func TestNextWaits(t *testing.T) {
	x := newExchange(t, ExchangeOptions{})
	a, b := join(t, x, Hello{Process: 1}), join(t, x, Hello{Process: 2, Channels: []string{"x"}})
	got := make(chan int)
	go func() {
		for {
			events := b.Next()
			got <- len(events)
			if events == nil {
				return
			}
		}
	}()
	a.Announce(1, []string{"x"})
	a.Publish(1, []Message{message("x", "1")})
	if n := <-got; n != 1 {
		t.Errorf("%d events", n)
	}
	x.Close()
	if n := <-got; n != 0 {
		t.Errorf("%d events after the end", n)
	}
	if _, err := x.Join(Hello{Process: 4}); err == nil {
		t.Error("a closed exchange takes a member")
	}
}

// Goal: the others are told once when a process has ended, after what Ended does: at once if it said goodbye, after a while if its
// connection broke, not at all if it connects again.
func TestProcessEnds(t *testing.T) {
	ended := make(chan uint64, 10)
	x := newExchange(t, ExchangeOptions{Return: time.Hour, Ended: func(process uint64) { ended <- process }})
	other := join(t, x, Hello{Process: 1})
	leaves := join(t, x, Hello{Process: 2})
	leaves.Goodbye(5)
	expectEvents(t, leaves, "ack 5; ")
	leaves.Leave()
	leaves.Leave()
	expectEnded(t, other, ended, 2)

	join(t, x, Hello{Process: 3}).Leave() // It may return for an hour.
	x.opts.Return = time.Millisecond
	broken := join(t, x, Hello{Process: 4})
	broken.Leave()
	expectEnded(t, other, ended, 4)

	x.opts.Return = 50 * time.Millisecond
	join(t, x, Hello{Process: 5}).Leave()
	again := join(t, x, Hello{Process: 5})
	join(t, x, Hello{Process: 5}) // takes the place of again
	again.Leave()
	join(t, x, Hello{Process: 6}).Leave()
	expectEnded(t, other, ended, 6)
	expectEvents(t, other, "")
}

func expectEnded(t *testing.T, other *Member, ended chan uint64, process uint64) {
	t.Helper()
	if got := <-ended; got != process {
		t.Fatalf("process %d has ended, want %d", got, process)
	}
	if e := other.Next(); len(e) != 1 || !e[0].Ended {
		t.Fatalf("the other process is told %+v", e)
	}
}

// Goal: of the processes that were connected with a former Exchange, those that do not connect with the new one are ended, and no other; the members are
// reported until they have been dealt with. Method: a clock that the test moves; one of two connects in time, and one that nobody knew.
func TestFormerMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var ended, members []uint64
		dealing := make(chan struct{})
		x := newExchange(t, ExchangeOptions{
			Former: []uint64{1, 2},
			Ended: func(process uint64) {
				<-dealing
				mu.Lock()
				defer mu.Unlock()
				ended = append(ended, process)
			},
			Members: func(all []uint64) { mu.Lock(); defer mu.Unlock(); members = all },
		})
		expect := func(wantEnded, wantMembers []uint64) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(ended, wantEnded) || !slices.Equal(members, wantMembers) {
				t.Errorf("ended %v, members %v; want %v, %v", ended, members, wantEnded, wantMembers)
			}
		}
		time.Sleep(DefaultFormerReturn - 1) // The time to connect is nearly over.
		join(t, x, Hello{Process: 2})
		third := join(t, x, Hello{Process: 3})
		expect(nil, []uint64{1, 2, 3})
		time.Sleep(time.Hour)          // It is over.
		expect(nil, []uint64{1, 2, 3}) // Its locks are being looked for.
		close(dealing)
		expect([]uint64{1}, []uint64{2, 3})
		third.Leave()
		time.Sleep(DefaultReturn - time.Nanosecond) // It may return.
		expect([]uint64{1}, []uint64{2, 3})
		time.Sleep(time.Nanosecond) // No longer.
		expect([]uint64{1, 3}, []uint64{2})
	})
}
