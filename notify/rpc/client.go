package rpc

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/notify/rpc/notifypb"
)

const (
	// requestTimeout bounds the wait for a connection and for an answer.
	requestTimeout = 5 * time.Second
	// retryMin and retryMax bound the wait between attempts to connect.
	retryMin = 20 * time.Millisecond
	retryMax = time.Second
	// outBytes bounds the requests that wait to be sent; a connection that falls behind by more is given up.
	outBytes = 64 << 20
	// maxLost is the number of lost channels that are listed one by one.
	maxLost = 10_000
	// hintOutBytes is the number of bytes that wait to be sent beyond which hints are dropped, hintBytes what one takes beside its key.
	hintOutBytes = outBytes / 16
	hintBytes    = 128
	// leaveTimeout bounds the wait at Close until the Exchange knows that the process ends; it notices anyway, later.
	leaveTimeout = time.Second
)

// UnavailableError: the Exchange does not answer. What was requested has no effect.
type UnavailableError struct{}

func (*UnavailableError) Error() string {
	return "the tso process, which passes notifications on to other SQL processes, is not available"
}

// Kind implements errkind.Error.
func (*UnavailableError) Kind() errkind.Kind { return errkind.OracleUnavailable }

// Client connects the Hub of a process with the Exchange. It connects again when the connection is lost. Safe for concurrent use.
type Client struct {
	client  notifypb.NotificationsClient
	opts    Options
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	current *connection   // nil: there is none
	changed chan struct{} // closed when current changes
	lastID  uint64
	refs    map[string]int // of each channel
	// announced are the announcements that the Exchange has not been told the end of, or has not confirmed it.
	announced map[uint64]*announced
	// lost are channels of which notifications could not be published while there was no connection; the next one begins
	// with them.
	lost    map[string]struct{}
	lostAll bool
}

var _ notify.Link = (*Client)(nil)

// announced is an announcement.
type announced struct {
	channels []string
	over     bool // its end is on its way
}

// Options of a Client. All but LockHint are required.
type Options struct {
	Process uint64 // identifies this process in the cluster
	Hub     *notify.Hub
	Logger  *slog.Logger
	// LockHint is called with the hints of other processes. It does not block. nil: they are dropped.
	LockHint func(notify.LockHint)
}

// Connect connects a Hub by conn, which stays the caller's, until Close.
func Connect(conn grpc.ClientConnInterface, opts Options) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{
		client: notifypb.NewNotificationsClient(conn), opts: opts,
		stop: stop, stopped: make(chan struct{}), changed: make(chan struct{}),
		refs: map[string]int{}, announced: map[uint64]*announced{}, lost: map[string]struct{}{},
	}
	opts.Hub.Join(c)
	go c.run(ctx)
	return c
}

// Close ends the connection and the listeners: the process ends, and has no more transactions.
func (c *Client) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	err := c.request(ctx, func(id uint64) *notifypb.Request { return &notifypb.Request{Kind: &notifypb.Request_Leave{Leave: id}} })
	if err != nil {
		c.opts.Logger.Debug("the tso process was not told that this process ends", "err", err)
	}
	c.stop()
	<-c.stopped
}

func (c *Client) run(ctx context.Context) {
	defer close(c.stopped)
	wait := retryMin
	for ctx.Err() == nil {
		established, err := c.connect(ctx)
		if established {
			wait = retryMin
			if ctx.Err() == nil {
				c.opts.Logger.Warn("the connection that notifications arrive by was lost: all listening sessions end", "err", err)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, retryMax)
	}
}

// connection is one stream to the Exchange.
type connection struct {
	stream grpc.BidiStreamingClient[notifypb.Request, notifypb.Events]
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	filled chan struct{} // tells that out has requests

	// Guarded by the client's mutex.
	out   []*notifypb.Request
	bytes int64
	acks  map[uint64]chan struct{} // of the requests that somebody waits for
}

// connect runs one connection to its end, and reports whether it was established.
func (c *Client) connect(ctx context.Context) (established bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := c.client.Connect(ctx, grpc.WaitForReady(true)) // The connection's own backoff is shorter than that of run.
	if err != nil {
		return false, err
	}
	s := &connection{stream: stream, cancel: cancel, done: make(chan struct{}), filled: make(chan struct{}, 1), acks: map[uint64]chan struct{}{}}
	c.begin(s)
	defer c.end(s)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		c.send(ctx, s)
	}()
	defer func() {
		cancel()
		<-sent
	}()
	for {
		events, err := stream.Recv()
		if err != nil {
			return established, err
		}
		established = true
		c.handle(s, events)
	}
}

// begin makes s the current connection; Hello is its first request.
func (c *Client) begin(s *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hello := &notifypb.Hello{Process: c.opts.Process, Channels: slices.Collect(maps.Keys(c.refs)), Lost: slices.Collect(maps.Keys(c.lost)), LostAll: c.lostAll}
	for id, a := range c.announced {
		hello.Announced = append(hello.Announced, &notifypb.Channels{Id: id, Channels: a.channels})
	}
	c.put(s, &notifypb.Request{Kind: &notifypb.Request_Hello{Hello: hello}}, 0)
	c.current = s
	close(c.changed)
	c.changed = make(chan struct{})
}

// end forgets a connection. What has been published by it and not confirmed may have been lost, for the listeners of this process
// as well as for those of others.
func (c *Client) end(s *connection) {
	c.mu.Lock()
	c.current = nil
	for id, a := range c.announced {
		if a.over {
			c.lose(a.channels)
			delete(c.announced, id)
		}
	}
	close(s.done)
	c.mu.Unlock()
	c.opts.Hub.LoseAll()
}

// lose has the next connection begin with the loss of channels.
func (c *Client) lose(channels []string) {
	for _, channel := range channels {
		if len(c.lost) == maxLost {
			c.lostAll = true
			clear(c.lost)
		}
		if c.lostAll {
			return
		}
		c.lost[channel] = struct{}{}
	}
}

// put appends a request. The client's mutex is held.
func (c *Client) put(s *connection, req *notifypb.Request, bytes int64) {
	if s.bytes+bytes > outBytes {
		s.cancel()
		return
	}
	s.out = append(s.out, req)
	s.bytes += bytes
	select {
	case s.filled <- struct{}{}:
	default:
	}
}

// send sends the requests of a connection until it ends.
func (c *Client) send(ctx context.Context, s *connection) {
	defer s.cancel()
	for {
		select {
		case <-s.filled:
		case <-ctx.Done():
			return
		}
		c.mu.Lock()
		out := s.out
		s.out, s.bytes = nil, 0
		c.mu.Unlock()
		for _, req := range out {
			if s.stream.Send(req) != nil {
				return // The stream's error shows where it is received from.
			}
		}
	}
}

// handle takes events in. The first ones confirm Hello.
func (c *Client) handle(s *connection, e *notifypb.Events) {
	hub := c.opts.Hub
	hub.Deliver(decodeMessages(e.Messages))
	hub.Lose(e.Lost)
	if e.LostAll {
		hub.LoseAll()
	}
	if e.Ended {
		hub.ProcessEnded()
	}
	if c.opts.LockHint != nil {
		for _, h := range e.LockHints {
			c.opts.LockHint(decodeHint(h))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.lost) > 0 || c.lostAll { // Nothing is added while there is a connection.
		clear(c.lost)
		c.lostAll = false
	}
	for _, id := range e.Acks {
		if a := c.announced[id]; a != nil && a.over {
			delete(c.announced, id)
		}
		if ack := s.acks[id]; ack != nil {
			close(ack)
			delete(s.acks, id)
		}
	}
}

// request sends a request with an id of its own, and waits until the Exchange has carried it out.
func (c *Client) request(ctx context.Context, build func(id uint64) *notifypb.Request) error {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, &UnavailableError{})
	defer cancel()
	s, ack, err := c.ask(ctx, build)
	if err != nil {
		return err
	}
	select {
	case <-ack:
		return nil
	case <-s.done:
		return &UnavailableError{}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ask waits for a connection and sends a request by it. ack is closed when the Exchange has carried it out.
func (c *Client) ask(ctx context.Context, build func(id uint64) *notifypb.Request) (s *connection, ack chan struct{}, err error) {
	for {
		c.mu.Lock()
		if s = c.current; s != nil {
			c.lastID++
			ack = make(chan struct{})
			s.acks[c.lastID] = ack
			c.put(s, build(c.lastID), 0)
			c.mu.Unlock()
			return s, ack, nil
		}
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
	}
}

// SendLockHint sends a hint to another process, unless there is no connection or much waits to be sent. It does not block. h.Key must not change
// afterwards.
func (c *Client) SendLockHint(h notify.LockHint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.current; s != nil && s.bytes < hintOutBytes {
		c.put(s, &notifypb.Request{Kind: &notifypb.Request_LockHint{LockHint: encodeHint(&h)}}, int64(len(h.Key))+hintBytes)
	}
}

// Subscribe implements notify.Link.
func (c *Client) Subscribe(ctx context.Context, channels []string) error {
	c.mu.Lock()
	for _, channel := range channels {
		c.refs[channel]++
	}
	c.mu.Unlock()
	err := c.request(ctx, func(id uint64) *notifypb.Request {
		return &notifypb.Request{Kind: &notifypb.Request_Subscribe{Subscribe: &notifypb.Channels{Id: id, Channels: channels}}}
	})
	if err != nil {
		c.Unsubscribe(channels)
	}
	return err
}

// Unsubscribe implements notify.Link.
func (c *Client) Unsubscribe(channels []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unused []string
	for _, channel := range channels {
		if c.refs[channel]--; c.refs[channel] == 0 {
			delete(c.refs, channel)
			unused = append(unused, channel)
		}
	}
	if unused != nil && c.current != nil {
		c.put(c.current, &notifypb.Request{Kind: &notifypb.Request_Unsubscribe{Unsubscribe: &notifypb.Channels{Channels: unused}}}, 0)
	}
}

// Announce implements notify.Link.
func (c *Client) Announce(ctx context.Context, channels []string) (notify.Announcement, error) {
	a := &announcement{client: c}
	err := c.request(ctx, func(id uint64) *notifypb.Request {
		a.id = id
		c.announced[id] = &announced{channels: channels}
		return &notifypb.Request{Kind: &notifypb.Request_Announce{Announce: &notifypb.Channels{Id: id, Channels: channels}}}
	})
	if err != nil {
		a.Cancel()
		return nil, err
	}
	return a, nil
}

// announcement implements notify.Announcement.
type announcement struct {
	client *Client
	id     uint64
}

func (a *announcement) Publish(messages []notify.Message) {
	bytes := int64(0)
	for i := range messages {
		bytes += messages[i].Size()
	}
	a.finish(&notifypb.Request{Kind: &notifypb.Request_Publish{Publish: &notifypb.Publish{Id: a.id, Messages: encodeMessages(messages)}}}, bytes)
}

func (a *announcement) Lose() {
	a.finish(&notifypb.Request{Kind: &notifypb.Request_Lose{Lose: a.id}}, 0)
}

// finish sends how the announcement ends. Without a connection, notifications may be lost.
func (a *announcement) finish(req *notifypb.Request, bytes int64) {
	c := a.client
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.announced[a.id]
	if c.current == nil {
		delete(c.announced, a.id)
		c.lose(x.channels)
		return
	}
	x.over = true
	c.put(c.current, req, bytes)
}

func (a *announcement) Cancel() {
	c := a.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.announced[a.id]; !ok { // No connection took it.
		return
	}
	delete(c.announced, a.id)
	if c.current != nil {
		c.put(c.current, &notifypb.Request{Kind: &notifypb.Request_Cancel{Cancel: a.id}}, 0)
	}
}
