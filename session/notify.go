package session

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/notify"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// notifications runs LISTEN, UNLISTEN and NOTIFY. What they ask for takes effect when the transaction commits:
//
//	NOTIFY ─▶ transaction.pending ─▶ prepare: subscribe, announce ─▶ commit ─▶ finish: publish
type notifications struct {
	hub *notify.Hub // nil: the session neither listens nor notifies
	tx  *transaction
	pid uint32
	// database is what the names of the database's channels begin with, before the hub: each database has channels of its own.
	database string
	ended    func(why error) // ends the session, whose listener has been ended

	listener *notify.Listener // nil: it has never listened
	// channels are those that the committed transactions have left, with numbers in the order of LISTEN.
	channels map[string]int
	last     int // of these numbers
}

// The limits of PostgreSQL, in bytes.
const (
	maxChannel = 63
	maxPayload = 7999
)

// pendingNotify is what the commit of a transaction does for its LISTEN, UNLISTEN and NOTIFY.
type pendingNotify struct {
	messages []notify.Message            // of NOTIFY, in order, each once
	known    map[notify.Message]struct{} // messages, if they are many
	actions  []listenAction
	bytes    int64 // of all, drawn from memory
}

// listenAction is LISTEN, or UNLISTEN, whose channel "" means all.
type listenAction struct {
	listen  bool
	channel string
}

// pendingMark is a position in pendingNotify.
type pendingMark struct{ messages, actions int }

// fewMessages are searched one by one for a duplicate.
const fewMessages = 16

func (a *pendingNotify) empty() bool { return len(a.messages) == 0 && len(a.actions) == 0 }

func (a *pendingNotify) mark() pendingMark {
	return pendingMark{messages: len(a.messages), actions: len(a.actions)}
}

// rollbackTo forgets what came after the mark.
func (a *pendingNotify) rollbackTo(m pendingMark, account *memory.Account) {
	before := a.bytes
	for i := range a.messages[m.messages:] {
		gone := &a.messages[m.messages+i]
		delete(a.known, *gone)
		a.bytes -= gone.Size()
	}
	for i := range a.actions[m.actions:] {
		a.bytes -= a.actions[m.actions+i].size()
	}
	a.messages, a.actions = a.messages[:m.messages], a.actions[:m.actions]
	account.Shrink(before - a.bytes)
}

// clear forgets everything.
func (a *pendingNotify) clear(account *memory.Account) {
	if a.bytes > 0 {
		account.Shrink(a.bytes)
	}
	*a = pendingNotify{}
}

// has reports whether a message is pending.
func (a *pendingNotify) has(m notify.Message) bool {
	if a.known == nil && len(a.messages) > fewMessages {
		a.known = make(map[notify.Message]struct{}, 2*len(a.messages))
		for _, m := range a.messages {
			a.known[m] = struct{}{}
		}
	}
	if a.known == nil {
		return slices.Contains(a.messages, m)
	}
	_, known := a.known[m]
	return known
}

func (a *listenAction) size() int64 {
	m := notify.Message{Channel: a.channel}
	return m.Size()
}

// notify is NOTIFY and pg_notify.
func (n *notifications) notify(channel, payload string) error {
	switch {
	case n.hub == nil:
		return pgerror.Unsupported("NOTIFY in this session", "")
	case channel == "":
		return pgerror.New(pgerror.InvalidParameterValue, "channel name cannot be empty")
	case len(channel) > maxChannel:
		return pgerror.New(pgerror.InvalidParameterValue, "channel name too long")
	case len(payload) > maxPayload:
		return pgerror.New(pgerror.InvalidParameterValue, "payload string too long")
	}
	m := notify.Message{PID: n.pid, Channel: n.database + channel, Payload: payload}
	a := &n.tx.pending
	if a.has(m) {
		return nil
	}
	if a.bytes+m.Size() > n.hub.QueueBytes() {
		return pgerror.New(pgerror.ProgramLimitExceeded, "too many notifications in the NOTIFY queue").
			WithDetail("The notifications of a transaction take at most %d bytes.", n.hub.QueueBytes())
	}
	if err := n.draw(m.Size()); err != nil {
		return err
	}
	a.messages = append(a.messages, m)
	if a.known != nil {
		a.known[m] = struct{}{}
	}
	return nil
}

// draw draws the memory of what is pending.
func (n *notifications) draw(bytes int64) error {
	if err := n.tx.env.Memory.Grow(bytes); err != nil {
		return err
	}
	n.tx.pending.bytes += bytes
	return nil
}

// run is LISTEN, UNLISTEN and NOTIFY.
func (n *notifications) run(tree ast.Statement) (Tag, error) {
	switch st := tree.(type) {
	case *ast.Listen:
		return verb("LISTEN"), n.ask(listenAction{listen: true, channel: n.database + st.Channel})
	case *ast.Unlisten:
		if st.Channel == "" {
			return verb("UNLISTEN"), n.ask(listenAction{})
		}
		return verb("UNLISTEN"), n.ask(listenAction{channel: n.database + st.Channel})
	case *ast.Notify:
		payload := ""
		if st.Payload != nil {
			payload = *st.Payload
		}
		return verb("NOTIFY"), n.notify(st.Channel, payload)
	}
	return Tag{}, pgerror.New(pgerror.InternalError, "no way to run a %T", tree)
}

func (n *notifications) ask(action listenAction) error {
	if n.hub == nil {
		return pgerror.Unsupported("LISTEN in this session", "")
	}
	if !action.listen && n.listener == nil && len(n.tx.pending.actions) == 0 {
		return nil // Poolers send UNLISTEN * by default.
	}
	if err := n.draw(action.size()); err != nil {
		return err
	}
	n.tx.pending.actions = append(n.tx.pending.actions, action)
	return nil
}

// preparedNotifications is what follows the commit of a transaction.
type preparedNotifications struct {
	n            *notifications
	pending      pendingNotify
	channels     map[string]int // after the commit; nil: as before
	added        []string
	announcement notify.Announcement // nil: no message
}

// prepare prepares for the commit of the transaction; after an error it must not commit.
func (n *notifications) prepare(ctx context.Context) (preparedNotifications, error) {
	p := preparedNotifications{n: n, pending: n.tx.pending}
	if len(p.pending.actions) > 0 {
		p.channels = maps.Clone(n.channels)
		if p.channels == nil {
			p.channels = map[string]int{}
		}
		for _, action := range p.pending.actions {
			switch {
			case action.listen && p.channels[action.channel] == 0:
				n.last++
				p.channels[action.channel] = n.last
			case action.listen:
			case action.channel == "":
				clear(p.channels)
			default:
				delete(p.channels, action.channel)
			}
		}
		p.added = without(p.channels, n.channels)
	}
	if err := n.listen(ctx, p.added); err != nil {
		return p, err
	}
	if len(p.pending.messages) == 0 {
		return p, nil
	}
	var channels []string
	for i := range p.pending.messages {
		if channel := p.pending.messages[i].Channel; len(channels) == 0 || channels[len(channels)-1] != channel {
			channels = append(channels, channel)
		}
	}
	slices.Sort(channels)
	announcement, err := n.hub.Announce(ctx, slices.Compact(channels))
	if err != nil {
		n.unlisten(p.added)
		return p, err
	}
	p.announcement = announcement
	return p, nil
}

// without lists the channels of a that b does not have.
func without(a, b map[string]int) []string {
	var list []string
	for channel := range a {
		if _, ok := b[channel]; !ok {
			list = append(list, channel)
		}
	}
	return list
}

// listen adds channels to those of the listener. They draw memory until unlisten; after an error none is added.
func (n *notifications) listen(ctx context.Context, channels []string) error {
	if len(channels) == 0 {
		return nil
	}
	if n.listener == nil {
		n.listener = n.hub.NewListener(n.ended)
	}
	if err := n.tx.env.Memory.Grow(channelsSize(channels)); err != nil {
		return err
	}
	err := n.listener.Listen(ctx, channels)
	if err != nil {
		n.tx.env.Memory.Shrink(channelsSize(channels))
	}
	return err
}

func (n *notifications) unlisten(channels []string) {
	if len(channels) > 0 {
		n.listener.Unlisten(channels)
		n.tx.env.Memory.Shrink(channelsSize(channels))
	}
}

// channelBytes is what a channel of a listener takes beside its name.
const channelBytes = 256

func channelsSize(channels []string) int64 {
	size := int64(0)
	for _, channel := range channels {
		size += int64(len(channel)) + channelBytes
	}
	return size
}

// finish follows the commit, whose error is err.
func (p *preparedNotifications) finish(err error) {
	n := p.n
	switch {
	case err == nil:
		if p.channels != nil {
			n.change(p.channels)
		}
		if p.announcement != nil {
			p.announcement.Publish(p.pending.messages)
		}
		return
	case p.announcement == nil:
	case errkind.Of(err) == errkind.Undetermined:
		p.announcement.Lose()
	default:
		p.announcement.Cancel()
	}
	n.unlisten(p.added)
}

// change replaces the channels; the listener has those that are new.
func (n *notifications) change(channels map[string]int) {
	n.unlisten(without(n.channels, channels))
	if n.channels = channels; len(channels) == 0 && n.listener != nil {
		n.listener.Take() // A later LISTEN must not find what came before.
	}
}

// unlistenAll is UNLISTEN * outside of a transaction, for DISCARD ALL.
func (n *notifications) unlistenAll() { n.change(nil) }

// close ends the listener.
func (n *notifications) close() {
	if n.listener != nil {
		n.listener.Close()
		n.listener = nil
	}
}

// listening lists the channels in the order of LISTEN.
func (n *notifications) listening() []string {
	list := slices.SortedFunc(maps.Keys(n.channels), func(a, b string) int { return n.channels[a] - n.channels[b] })
	for i := range list {
		list[i] = list[i][len(n.database):]
	}
	return list
}

// Listening reports whether the client is to be sent notifications when some arrive: it listens, and no transaction is open.
func (s *Session) Listening() bool {
	return len(s.notifications.channels) > 0 && s.tx.phase == idle
}

// TakeNotifications returns the notifications that have arrived, if the client is to be sent them now.
func (s *Session) TakeNotifications() []notify.Message {
	if !s.Listening() {
		return nil
	}
	n := &s.notifications
	taken := slices.DeleteFunc(n.listener.Take(), func(m notify.Message) bool {
		_, ok := n.channels[m.Channel]
		return !ok // UNLISTEN came between.
	})
	for i := range taken {
		taken[i].Channel = taken[i].Channel[len(n.database):]
	}
	return taken
}

// AwaitNotifications has wake called, once, when a notification arrives for a session that is Listening; false: some have
// arrived. wake is called by another goroutine, and must neither wait nor call the session.
func (s *Session) AwaitNotifications(wake func()) bool { return s.notifications.listener.Await(wake) }

// StopAwaitingNotifications ends AwaitNotifications. It reports whether wake has been called; it is not called afterwards.
func (s *Session) StopAwaitingNotifications() (woken bool) {
	return s.notifications.listener.StopAwaiting()
}

// listenerEnded is the error that ends the session of a listener that has been ended.
func listenerEnded(why error) *pgerror.Error {
	if errors.Is(why, notify.ErrQueueFull) {
		return pgerror.New(pgerror.ProgramLimitExceeded, "terminating connection because too many notifications wait for the client").
			WithHint("A listening client should read its connection, and not keep transactions open.")
	}
	return pgerror.New(pgerror.CrashShutdown, "terminating connection because notifications may have been lost").
		WithDetail("A process of the cluster, or the connection to one, has failed.").
		WithHint("Connect and LISTEN again, then look for what has changed.")
}
