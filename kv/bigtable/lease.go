package bigtable

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
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
// saved only by the holder, in the same row, so that a process that has lost the lease unawares cannot save one.

const (
	coordinatorRow = "coordinator"
	columnLease    = "lease"
	columnWindow   = "window"

	leaseTime    = 2 * time.Second
	leaseRenewal = 500 * time.Millisecond
	leaseMargin  = leaseTime / 10         // clocks of two machines that run at different rates
	leasePoll    = 400 * time.Millisecond // and at the moment when the lease has been unchanged for long enough
)

// ErrLeaseLost: another process is the coordinator.
var ErrLeaseLost = errors.New("bigtable: another process is the coordinator")

// Lease is held by the coordinator. Safe for concurrent use.
type Lease struct {
	c    *Client
	id   uint64
	addr string

	// end is when the lease ends. It is not guarded by mu: timestamps do not wait for a renewal under way.
	end    atomic.Pointer[instant]
	clocks func() instant

	mu    sync.Mutex
	seq   uint64
	value []byte // the cell
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

func (c *Client) readCoordinator(ctx context.Context, qualifier string) ([]byte, error) {
	row, err := c.readRow(ctx, metaRow(coordinatorRow), column(familyMeta, qualifier))
	if err != nil || row == nil || len(row[familyMeta]) == 0 {
		return nil, err
	}
	return row[familyMeta][0].Value, nil
}

// Coordinator returns the address of the coordinator, "" if there is none.
func (c *Client) Coordinator(ctx context.Context) (addr string, err error) {
	value, err := c.readCoordinator(ctx, columnLease)
	return leaseAddr(value), err
}

// AcquireLease waits until this process, which others reach at addr, is the coordinator.
func (c *Client) AcquireLease(ctx context.Context, addr string) (*Lease, error) {
	l := &Lease{c: c, id: rand.Uint64(), addr: addr, clocks: systemClocks}
	l.end.Store(&instant{})
	var seen []byte
	var since time.Time
	for {
		value, err := c.readCoordinator(ctx, columnLease)
		if err == nil {
			if since.IsZero() || !bytes.Equal(value, seen) {
				seen, since = value, time.Now()
			}
			if leaseAddr(value) == "" || time.Since(since) > leaseTime+leaseMargin {
				if err = l.swap(ctx, value, nil); err == nil {
					return l, nil
				}
			}
		}
		if kind := errkind.Of(err); kind == errkind.Refused || kind == errkind.Closed {
			return nil, err
		}
		pause := leasePoll
		if left := time.Until(since.Add(leaseTime + leaseMargin)); left > 0 {
			pause = min(pause, left+time.Millisecond)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// swap replaces the cell, if it is as before, by a new one of this process, and makes another change of the row with it. The
// caller holds mu, or is the only one that has l.
func (l *Lease) swap(ctx context.Context, before []byte, window []byte) error {
	begun := l.clocks()
	value := encodeLease(l.id, l.seq+1, l.addr)
	change := widerow.NewMutation()
	change.Set(familyMeta, columnLease, value)
	if window != nil {
		change.Set(familyMeta, columnWindow, window)
	}
	swapped, err := l.c.change(ctx, columnLease, before, change)
	if err != nil {
		// It may have been made. A second attempt, if this one was, finds another cell: then the cell says.
		now, readErr := l.c.readCoordinator(ctx, columnLease)
		if readErr != nil || !bytes.Equal(now, value) {
			return err
		}
		swapped = true
	}
	if !swapped {
		return ErrLeaseLost
	}
	l.seq, l.value = l.seq+1, value
	l.end.Store(begun.add(leaseTime))
	return nil
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

// renew renews the lease, with a change of the oracle's window.
func (l *Lease) renew(ctx context.Context, window []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.end.Load().monotonic - l.clocks().monotonic
	if left <= 0 {
		return ErrLeaseLost
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return l.swap(ctx, l.value, window)
}

// Release lets another process become the coordinator at once.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end.Store(&instant{})
	change := widerow.NewMutation()
	change.Set(familyMeta, columnLease, encodeLease(l.id, l.seq+1, ""))
	_, err := l.c.change(ctx, columnLease, l.value, change)
	return err
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
