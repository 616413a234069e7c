package bigtable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// One process at a time is the coordinator: it issues timestamps, keeps the graph of waits, and collects garbage. Which one
// it is, a row says: the lease, which its holder rewrites every leaseRenewal, and the window of the oracle. Whoever finds
// the lease unchanged for leaseTime by its own clock replaces it; the holder stops before, by its own clock. The window is
// saved only by the holder, in the same row, so that a process that has lost the lease unawares cannot save one. So are the
// members, the processes that are connected with the holder, itself included: a successor learns from them which processes may have ended.

const (
	coordinatorRow = "coordinator"
	columnLease    = "lease"
	columnWindow   = "window"
	columnMembers  = "members"
	columnTable    = "table" // see identify

	leaseTime    = 2 * time.Second
	leaseRenewal = 500 * time.Millisecond
	leaseAttempt = leaseTime / 2  // how long a request may take before another one is sent
	leaseMargin  = leaseTime / 40 // clocks of two machines that run at different rates
	leasePoll    = 400 * time.Millisecond
	leaseWatch   = 200 * time.Millisecond // of a lease that its holder seems not to renew any more
)

// ErrLeaseLost: another process is the coordinator.
var ErrLeaseLost = errors.New("bigtable: another process is the coordinator")

// Lease is held by the coordinator. Safe for concurrent use.
type Lease struct {
	c      *Client
	id     uint64
	addr   string
	former []uint64

	// end is when the lease ends. It is guarded by nothing: timestamps do not wait for a renewal under way.
	end    atomic.Pointer[instant]
	clocks func() instant

	renewing chan struct{} // has an element while a request changes the row; guards seq and value
	seq      uint64        // of the last attempt to write the cell: each writes another one
	value    []byte        // the cell

	mu      sync.Mutex
	members []uint64
	listed  uint64 // how often they have been replaced
	saved   uint64 // listed, as of the members in the row
}

// instant is a time by two clocks: the monotonic one does not step, but may stand still while a machine is suspended; the wall clock does the reverse.
type instant struct {
	monotonic time.Duration
	wall      time.Time
}

func systemClocks() instant {
	return instant{monotonic: time.Since(processBegun), wall: time.Now().Round(0)}
}

func (i instant) add(d time.Duration) *instant {
	return &instant{monotonic: i.monotonic + d, wall: i.wall.Add(d)}
}

// Candidate is a process that wants to be the coordinator.
type Candidate struct {
	Addr    string // where others reach it
	Process uint64 // identifies it in its locks; 0: it sets none
	// Moved, if given, is called when another process has become the coordinator, or none is any more. It does not block.
	Moved func()
}

// encodeLease returns a lease cell: id(8) sequence(8) address. A lease without an address is released.
func encodeLease(id, seq uint64, addr string) []byte {
	b := binary.BigEndian.AppendUint64(nil, id)
	return append(binary.BigEndian.AppendUint64(b, seq), addr...)
}

func leaseAddr(value []byte) string {
	if len(value) < 16 {
		return ""
	}
	return string(value[16:])
}

// leaseHolder identifies who holds a lease; "": nobody.
func leaseHolder(value []byte) string {
	if leaseAddr(value) == "" {
		return ""
	}
	return string(value[:8])
}

func encodeMembers(members []uint64) []byte {
	var b []byte
	for _, m := range members {
		b = binary.BigEndian.AppendUint64(b, m)
	}
	return b
}

func decodeMembers(b []byte) (members []uint64) {
	for ; len(b) >= 8; b = b[8:] {
		members = append(members, binary.BigEndian.Uint64(b))
	}
	return members
}

func (c *Client) readCoordinator(ctx context.Context, qualifier string) ([]byte, error) {
	row, err := c.readRow(ctx, metaRow(coordinatorRow), column(familyMeta, qualifier))
	return coordinatorCell(row, qualifier), err
}

// coordinatorCell returns the value of a column of the coordinator's row, nil if there is none.
func coordinatorCell(row widerow.Row, qualifier string) []byte {
	for _, cell := range row[familyMeta] {
		if cell.Column == familyMeta+":"+qualifier {
			return cell.Value
		}
	}
	return nil
}

// Coordinator returns the address of the coordinator, "" if there is none.
func (c *Client) Coordinator(ctx context.Context) (addr string, err error) {
	value, err := c.readCoordinator(ctx, columnLease)
	return leaseAddr(value), err
}

// observed is what a candidate knows of the lease of another process.
type observed struct {
	value []byte
	since time.Time // it has not changed since; zero: it has not been read
}

// read notes that the lease was read by now. It returns whether it may be replaced, otherwise when it is to be read again, and whether another
// process has it than before.
func (o *observed) read(value []byte, now time.Time) (free bool, again time.Duration, moved bool) {
	if o.since.IsZero() || !bytes.Equal(value, o.value) {
		moved = !o.since.IsZero() && leaseHolder(value) != leaseHolder(o.value)
		o.value, o.since = value, now
	}
	left := leaseTime + leaseMargin - now.Sub(o.since)
	if leaseAddr(value) == "" || left <= 0 {
		return true, leasePoll, moved
	}
	again = leasePoll
	if now.Sub(o.since) > 2*leaseRenewal {
		again = leaseWatch
	}
	return false, min(left, again), moved
}

// AcquireLease waits until this process is the coordinator.
func (c *Client) AcquireLease(ctx context.Context, who Candidate) (*Lease, error) {
	l := &Lease{c: c, id: rand.Uint64(), addr: who.Addr, clocks: systemClocks, renewing: make(chan struct{}, 1)}
	l.end.Store(&instant{})
	var o observed
	for {
		again, err := l.try(ctx, who, &o)
		if err == nil && l.Valid() {
			return l, nil
		}
		if kind := errkind.Of(err); kind == errkind.Refused || kind == errkind.Closed {
			return nil, err
		}
		select {
		case <-time.After(again):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try reads the lease of another process, and takes it if it may. Otherwise it returns when to try again.
func (l *Lease) try(ctx context.Context, who Candidate, o *observed) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	row, err := l.c.readRow(ctx, metaRow(coordinatorRow), wholeFamily(familyMeta))
	if err != nil {
		return leasePoll, err
	}
	if err := l.c.sameTable(row); err != nil {
		return leasePoll, err
	}
	value := coordinatorCell(row, columnLease)
	free, again, moved := o.read(value, time.Now())
	if moved && who.Moved != nil {
		who.Moved()
	}
	if !free && !l.wrote(value) {
		return again, nil
	}
	l.join(decodeMembers(coordinatorCell(row, columnMembers)), who.Process)
	return again, l.swap(ctx, value, l.addr, nil)
}

// join prepares the members of a new lease: those of the one before, and its holder.
func (l *Lease) join(former []uint64, process uint64) {
	l.former = slices.DeleteFunc(former, func(m uint64) bool { return m == process })
	if process != 0 {
		l.SetMembers(append(slices.Clone(l.former), process))
	}
}

// Former returns the other processes that the coordinators before have left as their members. Those that live connect with this one.
func (l *Lease) Former() []uint64 { return l.former }

// SetMembers replaces the members; they are saved by the next renewal.
func (l *Lease) SetMembers(members []uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members = members
	l.listed++
}

// swap replaces the cell, if it is as before, by a new one of this process with an address, and makes another change of the row with it. The
// caller holds renewing, or is the only one that has l.
func (l *Lease) swap(ctx context.Context, before []byte, addr string, window []byte) error {
	for {
		begun := l.clocks()
		l.seq++
		value := encodeLease(l.id, l.seq, addr)
		change := widerow.NewMutation()
		change.Set(familyMeta, columnLease, value)
		if window != nil {
			change.Set(familyMeta, columnWindow, window)
		}
		listed := l.listMembers(change)
		swapped, err := l.c.change(ctx, columnLease, before, change)
		if !swapped {
			// It may have been made all the same, or an earlier attempt whose answer was lost, later: the cell says.
			now, readErr := l.c.readCoordinator(ctx, columnLease)
			switch {
			case readErr != nil:
				return errors.Join(err, readErr)
			case bytes.Equal(now, value):
			case !bytes.Equal(now, before) && l.wrote(now):
				before = now
				continue
			case err != nil:
				return err
			default:
				return ErrLeaseLost
			}
		}
		l.value = value
		if addr != "" {
			l.end.Store(begun.add(leaseTime))
		}
		l.mu.Lock()
		l.saved = listed
		l.mu.Unlock()
		return nil
	}
}

// wrote reports whether a lease cell is one that this process has written for l. Then no other process has had the lease since.
func (l *Lease) wrote(value []byte) bool {
	return len(value) >= 8 && binary.BigEndian.Uint64(value) == l.id
}

// listMembers adds the members to a change of the row, unless it has them, and returns which ones they are.
func (l *Lease) listMembers(change *widerow.Mutation) (listed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.saved == l.listed:
	case len(l.members) == 0:
		change.DeleteCellsInColumn(familyMeta, columnMembers)
	default:
		change.Set(familyMeta, columnMembers, encodeMembers(l.members))
	}
	return l.listed
}

// change makes a change of the coordinator's row if a cell is as before; nil: if there is none.
func (c *Client) change(ctx context.Context, qualifier string, before []byte, change *widerow.Mutation) (made bool, err error) {
	cell := column(familyMeta, qualifier)
	if before == nil {
		return c.unless(ctx, metaRow(coordinatorRow), cell, change)
	}
	is := widerow.ChainFilters(cell, widerow.ValueRangeFilter(before, append(bytes.Clone(before), 0)))
	return c.onlyIf(ctx, metaRow(coordinatorRow), is, change)
}

// Valid reports whether the process is certainly still the coordinator: by both clocks.
func (l *Lease) Valid() bool {
	now, end := l.clocks(), l.end.Load()
	return now.monotonic < end.monotonic && now.wall.Before(end.wall)
}

// Keep renews the lease until it is lost, or ctx ends.
func (l *Lease) Keep(ctx context.Context) error {
	ticker := time.NewTicker(leaseRenewal)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		err := l.renew(ctx, nil)
		if errors.Is(err, ErrLeaseLost) || !l.Valid() {
			return ErrLeaseLost
		}
	}
}

// renew renews the lease, with a change of the oracle's window. An attempt without an answer is followed by another one.
func (l *Lease) renew(ctx context.Context, window []byte) error {
	select {
	case l.renewing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.renewing }()
	for {
		left := l.end.Load().monotonic - l.clocks().monotonic
		if left <= 0 {
			return ErrLeaseLost
		}
		attempt, cancel := context.WithTimeout(ctx, min(left, leaseAttempt))
		err := l.swap(attempt, l.value, l.addr, window)
		silent := attempt.Err() != nil
		cancel()
		if !silent || ctx.Err() != nil {
			return err
		}
	}
}

// Release lets another process become the coordinator at once.
func (l *Lease) Release(ctx context.Context) error {
	select {
	case l.renewing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.renewing }()
	l.end.Store(&instant{})
	return l.swap(ctx, l.value, "", nil)
}

// WindowStore keeps the window of the coordinator's oracle.
func (l *Lease) WindowStore() tso.WindowStore { return windowStore{l} }

type windowStore struct{ l *Lease }

func (w windowStore) Load(ctx context.Context) (tso.Timestamp, error) {
	value, err := w.l.c.readCoordinator(ctx, columnWindow)
	if err != nil || value == nil {
		return 0, err
	}
	ts, err := decodePlain(string(value))
	if err != nil {
		return 0, &mvcc.CorruptionError{Key: []byte(coordinatorRow), Detail: "window of the oracle", Err: err}
	}
	return ts, nil
}

func (w windowStore) Save(ctx context.Context, upper tso.Timestamp) error {
	return w.l.renew(ctx, []byte(plainTS(upper)))
}

// Oracle issues timestamps while the lease holds: a timestamp is returned only if it was taken before another process can
// have become the coordinator.
type Oracle struct {
	local *tso.Local
	lease *Lease
}

var (
	_ tso.Oracle = (*Oracle)(nil)
	_ tso.Source = (*Oracle)(nil)
)

// Remote returns the oracle for other processes, and for the sessions of this one: once the lease is lost it is closed, and who asks
// repeats the request, which then reaches the next coordinator.
func (o *Oracle) Remote() tso.Source { return handedOver{o} }

type handedOver struct{ *Oracle }

// NowN implements tso.Source.
func (o handedOver) NowN(ctx context.Context, n int) (tso.Timestamp, error) {
	ts, err := o.Oracle.NowN(ctx, n)
	if errors.Is(err, ErrLeaseLost) {
		err = tso.ErrClosed
	}
	return ts, err
}

// NewOracle returns the oracle of the coordinator over one with the lease's window.
func NewOracle(local *tso.Local, lease *Lease) *Oracle { return &Oracle{local: local, lease: lease} }

// Now implements tso.Oracle.
func (o *Oracle) Now(ctx context.Context) (tso.Timestamp, error) { return o.NowN(ctx, 1) }

// NowN implements tso.Source.
func (o *Oracle) NowN(ctx context.Context, n int) (tso.Timestamp, error) {
	ts, err := o.local.NowN(ctx, n)
	if err == nil && !o.lease.Valid() {
		err = &tso.UnavailableError{Err: ErrLeaseLost}
	}
	return ts, err
}

// GCSettings keeps what the controller of garbage collection stores.
type GCSettings struct{ c *Client }

// NewGCSettings returns the settings in a table.
func NewGCSettings(c *Client) *GCSettings { return &GCSettings{c} }

const gcSettingsRow = "gc_settings"

// settingsTimeout bounds a request about settings.
const settingsTimeout = 10 * time.Second

// LoadGC returns the settings last stored by SaveGC, zeros if there are none.
func (g *GCSettings) LoadGC() (kv.GCSettings, error) {
	ctx, cancel := context.WithTimeout(context.Background(), settingsTimeout)
	defer cancel()
	value, err := g.c.readMeta(ctx, gcSettingsRow)
	if err != nil || value == nil {
		return kv.GCSettings{}, err
	}
	if len(value) != 16 {
		return kv.GCSettings{}, &mvcc.CorruptionError{Key: []byte(gcSettingsRow), Detail: "settings of garbage collection", Err: errMalformed}
	}
	return kv.GCSettings{
		Life:      time.Duration(binary.BigEndian.Uint64(value)) * time.Millisecond,
		SafePoint: tso.Timestamp(binary.BigEndian.Uint64(value[8:])),
	}, nil
}

// SaveGC returns once the settings are durable.
func (g *GCSettings) SaveGC(s kv.GCSettings) error {
	ctx, cancel := context.WithTimeout(context.Background(), settingsTimeout)
	defer cancel()
	value := binary.BigEndian.AppendUint64(nil, uint64(s.Life.Milliseconds()))
	change := widerow.NewMutation()
	change.Set(familyMeta, columnValue, binary.BigEndian.AppendUint64(value, uint64(s.SafePoint)))
	return g.c.bulk(ctx, []string{metaRow(gcSettingsRow)}, []*widerow.Mutation{change})
}

// LoadCleared returns nothing: the table, which is one shard, is never away while others are not.
func (g *GCSettings) LoadCleared() (map[string]tso.Timestamp, error) {
	return map[string]tso.Timestamp{}, nil
}

// SaveCleared stores nothing: see LoadCleared.
func (g *GCSettings) SaveCleared(map[string]tso.Timestamp) error { return nil }
