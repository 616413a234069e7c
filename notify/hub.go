package notify

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/percodb/percodb/internal/memory"
)

// Message is a notification.
type Message struct {
	PID              uint32 // of the session that sent it
	Channel, Payload string
}

// messageBytes is what a message takes beside its strings.
const messageBytes = 64

// Size is the number of bytes that a queue counts for the message.
func (m *Message) Size() int64 { return int64(len(m.Channel)+len(m.Payload)) + messageBytes }

// DefaultQueueBytes bounds the notifications that wait for one listener.
const DefaultQueueBytes = 8 << 20

// Why a listener is ended.
var (
	// ErrQueueFull: more notifications wait than the queue holds.
	ErrQueueFull = errors.New("the queue of notifications is full")
	// ErrLost: notifications may have been lost between the processes of a cluster.
	ErrLost = errors.New("notifications may have been lost")
)

// Link connects a Hub with those of other processes.
type Link interface {
	// Subscribe returns when the process receives the notifications of the channels that are published from now on. After an
	// error it does not. Each call needs one of Unsubscribe.
	Subscribe(ctx context.Context, channels []string) error
	Unsubscribe(channels []string)
	// Announce returns when other processes end their listeners of the channels in case this process ends before the
	// Announcement does.
	Announce(ctx context.Context, channels []string) (Announcement, error)
}

// Announcement is of a transaction that is about to commit. One of its methods is called, once; none of them waits.
type Announcement interface {
	// Publish: the transaction has committed.
	Publish(messages []Message)
	// Cancel: it has not, and will not.
	Cancel()
	// Lose: nobody knows.
	Lose()
}

// Options configure a Hub.
type Options struct {
	QueueBytes int64        // for each listener; 0: DefaultQueueBytes
	Memory     *memory.Pool // of all queues; nil: they are not bounded together
}

// Hub delivers notifications to the listeners of a process. Safe for concurrent use.
type Hub struct {
	opts      Options
	link      Link // nil: there are no other processes
	listeners *index[*Listener]
	ended     atomic.Pointer[func()]
}

// New makes the Hub of a process.
func New(opts Options) *Hub {
	if opts.QueueBytes == 0 {
		opts.QueueBytes = DefaultQueueBytes
	}
	return &Hub{opts: opts, listeners: newIndex[*Listener]()}
}

// Join connects the Hub with other processes. It is called before any other method.
func (h *Hub) Join(link Link) { h.link = link }

// OnProcessEnded has f called when another process has ended, however it did, and the Exchange has noticed. f does not wait.
func (h *Hub) OnProcessEnded(f func()) { h.ended.Store(&f) }

// ProcessEnded reports that another process has ended.
func (h *Hub) ProcessEnded() {
	if f := h.ended.Load(); f != nil {
		(*f)()
	}
}

// QueueBytes is the size of a listener's queue.
func (h *Hub) QueueBytes() int64 { return h.opts.QueueBytes }

// Usage is how full the fullest queue is, from 0 to 1.
func (h *Hub) Usage() float64 {
	most := 0.0
	h.listeners.all(func(l *Listener) { most = max(most, l.queue.usage()) })
	return most
}

// Announce prepares for the commit of a transaction that notifies the channels. An error means that it must not commit.
func (h *Hub) Announce(ctx context.Context, channels []string) (Announcement, error) {
	a := &announcement{hub: h, channels: channels}
	if h.link != nil {
		remote, err := h.link.Announce(ctx, channels)
		if err != nil {
			return nil, err
		}
		a.remote = remote
	}
	return a, nil
}

// announcement is for the listeners of this process and, unless remote is nil, of others.
type announcement struct {
	hub      *Hub
	channels []string
	remote   Announcement
}

func (a *announcement) Publish(messages []Message) {
	if a.remote != nil {
		a.remote.Publish(messages)
	}
	a.hub.Deliver(messages)
}

func (a *announcement) Cancel() {
	if a.remote != nil {
		a.remote.Cancel()
	}
}

func (a *announcement) Lose() {
	if a.remote != nil {
		a.remote.Lose()
	}
	a.hub.Lose(a.channels)
}

// Deliver passes notifications to the listeners of this process.
func (h *Hub) Deliver(messages []Message) {
	for i := range messages {
		h.listeners.each(messages[i].Channel, func(l *Listener) { l.add(&messages[i]) })
	}
}

// Lose ends the listeners of channels, whose notifications may have been lost.
func (h *Hub) Lose(channels []string) {
	for _, channel := range channels {
		h.listeners.each(channel, func(l *Listener) { l.end(ErrLost) })
	}
}

// LoseAll ends all listeners.
func (h *Hub) LoseAll() { h.listeners.all(func(l *Listener) { l.end(ErrLost) }) }
