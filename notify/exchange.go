package notify

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"
)

// DefaultMemberBytes bounds the events that wait for one process.
const DefaultMemberBytes = 64 << 20

// DefaultReturn is how long a process whose connection has broken may take to connect again. A process that is killed
// has no connection from then on; one that is alive connects within milliseconds, unless the network is at fault.
const DefaultReturn = 250 * time.Millisecond

// DefaultFormerReturn is how long a process that was connected with a former Exchange may take to connect with the new one.
const DefaultFormerReturn = 500 * time.Millisecond

// ErrExchangeClosed: the Exchange takes no members any more.
var ErrExchangeClosed = errors.New("the exchange of notifications is closed")

// Hello introduces a process to the Exchange.
type Hello struct {
	Process  uint64   // identifies the process
	Channels []string // that it has listeners for
	// Announced are its open announcements by their ids.
	Announced map[uint64][]string
	// Lost are channels of which the process could not publish notifications; LostAll: there are too many to list.
	Lost    []string
	LostAll bool
}

// Event is what the Exchange sends a process.
type Event struct {
	Ack     uint64 // the id of a request that has been carried out; 0: none
	Message Message
	Lost    string // the channel whose listeners are to be ended; "": none
	LostAll bool   // all listeners are to be ended
	Ended   bool   // a process has ended; what it has left was finished, as far as possible
	// LockHint is from another process; nil: none.
	LockHint *LockHint
}

// size is the number of bytes that a queue counts for the event.
func (e *Event) size() int64 {
	n := e.Message.Size() + int64(len(e.Lost)) + eventBytes
	if e.LockHint != nil {
		n += int64(len(e.LockHint.Key))
	}
	return n
}

// eventBytes is what an event takes beside its strings.
const eventBytes = 128

// ExchangeOptions configure an Exchange.
type ExchangeOptions struct {
	MemberBytes int64         // bounds the events that wait for one process; 0: DefaultMemberBytes
	Return      time.Duration // 0: DefaultReturn
	// Ended is called in a goroutine when a process has left, or its connection has broken and it has not returned. The
	// other processes are told when it returns. nil: nothing is to be done.
	Ended func(process uint64)
	// Former are processes that were connected with an earlier Exchange, which this one replaces: those that do not connect within
	// FormerReturn (0: DefaultFormerReturn) have ended.
	Former       []uint64
	FormerReturn time.Duration
	// Members, if given, is called when they have changed: the processes that are connected, may return, or are being dealt with by Ended.
	// It does not block, and calls no method of the Exchange.
	Members func(processes []uint64)
}

// Exchange passes notifications between the SQL processes of a cluster. Safe for concurrent use.
type Exchange struct {
	opts  ExchangeOptions
	index *index[*Member]
	stop  chan struct{}  // closed by Close
	ends  sync.WaitGroup // calls of end

	mu      sync.Mutex
	members map[uint64]*Member  // by process
	known   map[uint64]struct{} // see ExchangeOptions.Members
	closed  bool
}

// NewExchange makes an Exchange.
func NewExchange(opts ExchangeOptions) *Exchange {
	if opts.MemberBytes == 0 {
		opts.MemberBytes = DefaultMemberBytes
	}
	if opts.Return == 0 {
		opts.Return = DefaultReturn
	}
	if opts.FormerReturn == 0 {
		opts.FormerReturn = DefaultFormerReturn
	}
	x := &Exchange{opts: opts, index: newIndex[*Member](), stop: make(chan struct{}), members: map[uint64]*Member{}, known: map[uint64]struct{}{}}
	for _, process := range opts.Former {
		x.known[process] = struct{}{}
		x.ends.Go(func() { x.end(process, opts.FormerReturn) })
	}
	return x
}

// reportLocked reports the members, which have changed.
func (x *Exchange) reportLocked() {
	if x.opts.Members != nil {
		x.opts.Members(slices.Sorted(maps.Keys(x.known)))
	}
}

// Close ends all members, and returns when no call of Ended runs.
func (x *Exchange) Close() {
	x.mu.Lock()
	if !x.closed {
		x.closed = true
		close(x.stop)
	}
	for _, m := range x.members {
		m.fail()
	}
	x.mu.Unlock()
	x.ends.Wait()
}

// end deals with a process that has gone, after wait, unless it returns within that.
func (x *Exchange) end(process uint64, wait time.Duration) {
	select {
	case <-time.After(wait):
	case <-x.stop:
		return
	}
	x.mu.Lock()
	_, returned := x.members[process]
	x.mu.Unlock()
	if returned {
		return
	}
	if x.opts.Ended != nil {
		x.opts.Ended(process)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, returned := x.members[process]; !returned {
		delete(x.known, process)
		x.reportLocked()
	}
	for _, m := range x.members {
		m.add(Event{Ended: true})
	}
}

// Member is a process that is connected. Next is for one goroutine, which sends it events. Safe for concurrent use otherwise.
type Member struct {
	exchange *Exchange
	process  uint64
	queue    queue[Event]
	arrived  chan struct{}
	failed   sync.Once
	done     chan struct{}

	mu        sync.Mutex
	left      bool
	leaves    bool // the process ends
	channels  map[string]struct{}
	announced map[uint64][]string
}

// Join adds a process. Its earlier connection, if it has one, ends before that. The caller calls Leave.
func (x *Exchange) Join(h Hello) (*Member, error) {
	m := &Member{exchange: x, process: h.Process, arrived: make(chan struct{}, 1), done: make(chan struct{}),
		channels: map[string]struct{}{}, announced: map[uint64][]string{}}
	m.queue.limit = x.opts.MemberBytes
	m.mu.Lock() // until it is whole: a later connection of the process ends it by Leave
	defer m.mu.Unlock()
	x.mu.Lock()
	earlier := x.members[h.Process]
	if !x.closed {
		x.members[h.Process] = m
		if _, known := x.known[h.Process]; !known {
			x.known[h.Process] = struct{}{}
			x.reportLocked()
		}
	}
	closed := x.closed
	x.mu.Unlock()
	if closed {
		return nil, ErrExchangeClosed
	}
	if earlier != nil {
		earlier.Leave()
	}
	for id, channels := range h.Announced {
		m.announced[id] = channels
	}
	m.subscribe(h.Channels)
	if h.LostAll {
		m.loseAll()
	}
	m.lose(h.Lost)
	return m, nil
}

// Leave removes the process. Listeners of the channels that it has announced are ended.
func (m *Member) Leave() {
	m.fail()
	x := m.exchange
	m.mu.Lock()
	defer m.mu.Unlock()
	x.mu.Lock()
	if x.members[m.process] == m {
		delete(x.members, m.process)
		if wait := x.opts.Return; !x.closed {
			if m.leaves {
				wait = 0
			}
			x.ends.Go(func() { x.end(m.process, wait) })
		}
	}
	x.mu.Unlock()
	if m.left {
		return
	}
	m.left = true
	for channel := range m.channels {
		x.index.remove(channel, m)
	}
	for _, channels := range m.announced {
		m.lose(channels)
	}
}

// Goodbye notes that the process ends, and does not connect again.
func (m *Member) Goodbye(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.leaves = true
	m.add(Event{Ack: id})
}

// fail ends the connection of the process, which then calls Leave.
func (m *Member) fail() {
	m.queue.end()
	m.failed.Do(func() { close(m.done) })
}

// Next waits for events and returns them; none: the connection is to end.
func (m *Member) Next() []Event {
	for {
		if !m.queue.await(m.wake) {
			return m.queue.take()
		}
		select {
		case <-m.arrived:
		case <-m.done:
			return nil
		}
	}
}

func (m *Member) wake() {
	select {
	case m.arrived <- struct{}{}:
	default:
	}
}

// add sends the process an event; one that is too slow is disconnected, and ends its listeners.
func (m *Member) add(e Event) {
	if !m.queue.add(e.size(), e) {
		m.fail()
	}
}

// Subscribe has the process receive the notifications of channels.
func (m *Member) Subscribe(id uint64, channels []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return
	}
	m.subscribe(channels)
	m.add(Event{Ack: id})
}

func (m *Member) subscribe(channels []string) {
	for _, channel := range channels {
		m.channels[channel] = struct{}{}
		m.exchange.index.add(channel, m)
	}
}

// Unsubscribe ends Subscribe.
func (m *Member) Unsubscribe(channels []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, channel := range channels {
		delete(m.channels, channel)
		m.exchange.index.remove(channel, m)
	}
}

// Announce notes the channels of a transaction that is about to commit.
func (m *Member) Announce(id uint64, channels []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return
	}
	m.announced[id] = channels
	m.add(Event{Ack: id})
}

// Publish passes on the notifications of a transaction that has committed.
func (m *Member) Publish(id uint64, messages []Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left { // The announcement has been taken for lost.
		return
	}
	delete(m.announced, id)
	for i := range messages {
		m.exchange.index.each(messages[i].Channel, func(r *Member) {
			if r != m {
				r.add(Event{Message: messages[i]})
			}
		})
	}
	m.add(Event{Ack: id})
}

// Cancel ends the announcement of a transaction that has not committed.
func (m *Member) Cancel(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.announced, id)
}

// Lose ends the announcement of a transaction that may have committed.
func (m *Member) Lose(id uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left {
		return
	}
	channels := m.announced[id]
	delete(m.announced, id)
	m.lose(channels)
	m.add(Event{Ack: id})
}

// lose ends the listeners of channels at other processes.
func (m *Member) lose(channels []string) {
	for _, channel := range channels {
		m.exchange.index.each(channel, func(r *Member) {
			if r != m {
				r.add(Event{Lost: channel})
			}
		})
	}
}

func (m *Member) loseAll() {
	m.exchange.mu.Lock()
	defer m.exchange.mu.Unlock()
	for _, r := range m.exchange.members {
		if r != m {
			r.add(Event{LostAll: true})
		}
	}
}
