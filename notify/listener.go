package notify

import (
	"context"

	"github.com/percodb/percodb/internal/memory"
)

// Listener is the subscription of a session. Listen, Unlisten, Take, Await, StopAwaiting and Close are one goroutine's.
type Listener struct {
	hub   *Hub
	queue queue[Message]
	ended func(why error)
	// channels are those that it is registered for.
	channels map[string]struct{}
}

// NewListener makes a Listener, which the caller closes. ended is called once, by a goroutine of its own, when the listener is
// ended: it receives nothing any more.
func (h *Hub) NewListener(ended func(why error)) *Listener {
	l := &Listener{hub: h, ended: ended, channels: map[string]struct{}{}}
	l.queue.limit = h.opts.QueueBytes
	l.queue.account = memory.NewAccount(h.opts.Memory, 0)
	return l
}

// Listen adds channels, which it must not have: notifications that are published after it has returned are received. After an
// error none of them is.
func (l *Listener) Listen(ctx context.Context, channels []string) error {
	for _, channel := range channels {
		l.hub.listeners.add(channel, l)
		l.channels[channel] = struct{}{}
	}
	if l.hub.link == nil {
		return nil
	}
	err := l.hub.link.Subscribe(ctx, channels)
	if err != nil {
		l.remove(channels)
	}
	return err
}

// Unlisten removes channels, which it must have. Notifications in the queue stay there.
func (l *Listener) Unlisten(channels []string) {
	l.remove(channels)
	if l.hub.link != nil && len(channels) > 0 {
		l.hub.link.Unsubscribe(channels)
	}
}

func (l *Listener) remove(channels []string) {
	for _, channel := range channels {
		l.hub.listeners.remove(channel, l)
		delete(l.channels, channel)
	}
}

// Take removes the notifications from the queue.
func (l *Listener) Take() []Message { return l.queue.take() }

// Await has wake called, once, when a notification arrives; false: there are some. wake is called by the sender's goroutine,
// and must neither wait nor call the listener.
func (l *Listener) Await(wake func()) bool { return l.queue.await(wake) }

// StopAwaiting ends Await, unless that has returned false. It reports whether wake has been called; it is not called
// afterwards.
func (l *Listener) StopAwaiting() (woken bool) { return l.queue.stopAwaiting() }

// Close ends the listener without a call of ended.
func (l *Listener) Close() {
	l.queue.end()
	channels := make([]string, 0, len(l.channels))
	for channel := range l.channels {
		channels = append(channels, channel)
	}
	l.Unlisten(channels)
}

func (l *Listener) add(m *Message) {
	if !l.queue.add(m.Size(), *m) {
		l.end(ErrQueueFull)
	}
}

func (l *Listener) end(why error) {
	if l.queue.end() {
		go l.ended(why)
	}
}
