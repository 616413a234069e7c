package kv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// DirectoryOptions configure a LocalDirectory. Engine and Dial are required.
type DirectoryOptions struct {
	Engine *Engine // stays the caller's
	// Dial returns the owner's side of a shard.
	Dial func(ctx context.Context, info ShardInfo) (RangeOwner, error)
	// Oracle is the one whose window is stored in Engine: it is on hold while announcements of shards cast doubt on the
	// window. Without one, announcements are not judged.
	Oracle OracleControl
	Logger *slog.Logger
}

// LocalDirectory is a directory kept in an engine of this process. Safe for concurrent use.
//
// A change of ownership is a plan, stored before anything is done and removed when all is:
//
//	store the plan → source releases the span → store the new owner → target adopts → remove the plan
//
// Every step may be repeated, so that after a crash the plan is simply carried on. Until the source
// has answered the keys are its; from then on they are the target's, whether it knows or not.
type LocalDirectory struct {
	opts DirectoryOptions

	mu struct {
		sync.RWMutex
		ranges []RangeDescriptor // in key order; gaps only before the first shard has adopted
		shards map[string]ShardInfo
		// incarnations are the recorded ones, by shard.
		incarnations map[string]uint64
		lockBounds   map[string]tso.Timestamp // the highest that shards were given
		plans        map[uint64]*plan         // by id of the new range
		nextID       uint64

		standing  standing
		cluster   uint64                   // number of the cluster
		lost      bool                     // keys of forgotten shards may have no range yet
		named     map[string]bool          // shards that others have named, and that have not registered
		forgotten map[string]bool          // permanently excluded shards
		told      map[string]tso.Timestamp // the newest timestamps, as announced since the start or the last doubt
	}

	wake       chan struct{}
	stop       context.CancelFunc
	stopped    context.Context
	background sync.WaitGroup
}

var _ Directory = (*LocalDirectory)(nil)

// plan is a range that is to be moved: desc is the range with its new owner. source is "" for the first range, which no
// shard has owned.
type plan struct {
	desc        RangeDescriptor
	source      string
	remainderID uint64
	released    bool
	maxTS       uint64
	driving     bool // it is being executed; not stored
}

// OpenDirectory loads the directory of an engine and continues plans that a crash interrupted.
func OpenDirectory(opts DirectoryOptions) (*LocalDirectory, error) {
	if opts.Engine == nil || opts.Dial == nil {
		return nil, errors.New("kv: directory options without engine or dialer")
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if err := opts.Engine.claimMode(modeDirectory); err != nil {
		return nil, err
	}
	d := &LocalDirectory{opts: opts, wake: make(chan struct{}, 1)}
	if err := d.load(); err != nil {
		return nil, fmt.Errorf("load directory: %w", err)
	}
	d.stopped, d.stop = context.WithCancel(context.Background())
	if opts.Oracle != nil && d.mu.standing != standingSound {
		opts.Oracle.Hold(holdReason(d.mu.standing, awaitedShards(d.knownLocked(), nil)))
	}
	if d.mu.standing == standingAsking {
		d.background.Go(d.askShards)
	}
	d.background.Go(d.carryOn)
	return d, nil
}

// Close stops the work in the background. Plans under way are carried on at the next open.
func (d *LocalDirectory) Close() error {
	d.stop()
	d.background.Wait()
	return nil
}

func (d *LocalDirectory) load() (err error) {
	d.mu.shards, d.mu.plans, d.mu.incarnations = map[string]ShardInfo{}, map[uint64]*plan{}, map[string]uint64{}
	e := d.opts.Engine
	if err = e.scanMeta(metaDirRange, func(_, value []byte) error {
		desc, _, err := decodeDescriptor(value)
		d.mu.ranges = append(d.mu.ranges, desc)
		return err
	}); err != nil {
		return err
	}
	sortDescriptors(d.mu.ranges)
	if err = e.scanMeta(metaDirShard, func(id, value []byte) error {
		d.mu.shards[string(id)] = ShardInfo{ID: string(id), Addr: string(value)}
		return nil
	}); err != nil {
		return err
	}
	if err = e.scanMeta(metaDirIncarnation, func(id, value []byte) error {
		if len(value) != 8 {
			return errMalformedMeta
		}
		d.mu.incarnations[string(id)] = binary.BigEndian.Uint64(value)
		return nil
	}); err != nil {
		return err
	}
	d.mu.lockBounds = map[string]tso.Timestamp{}
	if err = e.scanMeta(metaDirLockBound, func(id, value []byte) error {
		if len(value) != 8 {
			return errMalformedMeta
		}
		d.mu.lockBounds[string(id)] = tso.Timestamp(binary.BigEndian.Uint64(value))
		return nil
	}); err != nil {
		return err
	}
	if err = e.scanMeta(metaDirPlan, func(_, value []byte) error {
		p, err := decodePlan(value)
		if err == nil {
			d.mu.plans[p.desc.ID] = p
		}
		return err
	}); err != nil {
		return err
	}
	d.mu.nextID, err = e.getMetaU64(metaDirNextID)
	d.mu.nextID = max(d.mu.nextID, 2) // 1 is the first range's
	if err != nil {
		return err
	}
	return d.loadStanding()
}

// loadStanding reads whether the directory is reliable.
func (d *LocalDirectory) loadStanding() (err error) {
	e := d.opts.Engine
	d.mu.named, d.mu.forgotten, d.mu.told = map[string]bool{}, map[string]bool{}, map[string]tso.Timestamp{}
	for prefix, ids := range map[string]map[string]bool{metaDirNamed: d.mu.named, metaDirForgotten: d.mu.forgotten} {
		if err := e.scanMeta(prefix, func(id, _ []byte) error { ids[string(id)] = true; return nil }); err != nil {
			return err
		}
	}
	if _, d.mu.lost, err = e.Get(nil, metaKey(metaDirLost)); err != nil {
		return err
	}
	_, doubted, err := e.Get(nil, metaKey(metaDirDoubt))
	if err != nil {
		return err
	}
	if d.mu.cluster, err = e.getMetaU64(metaDirCluster); err != nil || d.opts.Oracle == nil {
		return err // without an oracle there is no doubt
	}
	switch {
	case doubted:
		d.mu.standing = standingDoubted
	case len(d.mu.shards) == 0:
		d.mu.standing = standingEmpty
	default:
		d.mu.standing = standingAsking
	}
	if d.mu.cluster != 0 {
		return nil
	}
	d.mu.cluster = mathrand.Uint64() | 1
	b := e.NewBatch(0)
	defer b.Close()
	putCluster(b, d.mu.cluster)
	return e.applySync(b)
}

func putCluster(b *storage.Batch, cluster uint64) {
	b.Put(metaKey(metaDirCluster), binary.BigEndian.AppendUint64(nil, cluster))
}

func sortDescriptors(descs []RangeDescriptor) {
	slices.SortFunc(descs, func(a, b RangeDescriptor) int { return bytes.Compare(a.Span.Start, b.Span.Start) })
}

// Lookup implements Directory.
func (d *LocalDirectory) Lookup(_ context.Context, key []byte) (RangeDescriptor, ShardInfo, error) {
	return d.find(func(desc *RangeDescriptor) bool { return desc.Span.Contains(key) })
}

// LookupEnd implements Directory.
func (d *LocalDirectory) LookupEnd(_ context.Context, end []byte) (RangeDescriptor, ShardInfo, error) {
	return d.find(func(desc *RangeDescriptor) bool {
		if len(end) == 0 {
			return len(desc.Span.End) == 0
		}
		return bytes.Compare(desc.Span.Start, end) < 0 && compareEnds(end, desc.Span.End) <= 0
	})
}

func (d *LocalDirectory) find(match func(*RangeDescriptor) bool) (RangeDescriptor, ShardInfo, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for i := range d.mu.ranges {
		if match(&d.mu.ranges[i]) {
			return d.mu.ranges[i], d.mu.shards[d.mu.ranges[i].Shard], nil
		}
	}
	return RangeDescriptor{}, ShardInfo{}, &UnavailableError{Shard: "directory", Err: ErrNoRange}
}

// Ranges implements Directory.
func (d *LocalDirectory) Ranges(context.Context) ([]RangeDescriptor, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.Clone(d.mu.ranges), nil
}

// Shards implements Directory.
func (d *LocalDirectory) Shards(context.Context) ([]ShardInfo, error) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	infos := make([]ShardInfo, 0, len(d.mu.shards))
	for _, info := range d.mu.shards {
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b ShardInfo) int { return strings.Compare(a.ID, b.ID) })
	return infos, nil
}

// AllocateRangeID implements Directory.
func (d *LocalDirectory) AllocateRangeID(context.Context) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	id := d.mu.nextID
	putNextID(b, id+1)
	if err := d.opts.Engine.applySync(b); err != nil {
		return 0, err
	}
	d.mu.nextID = id + 1
	return id, nil
}

func putNextID(b *storage.Batch, id uint64) {
	b.Put(metaKey(metaDirNextID), binary.BigEndian.AppendUint64(nil, id))
}

// RegisterShard implements Directory. The first shard ever gets all keys.
func (d *LocalDirectory) RegisterShard(ctx context.Context, reg *Registration) ([]RangeDescriptor, error) {
	info, owned := reg.ShardInfo, reg.Owned
	if info.ID == "" {
		return nil, errors.New("kv: a shard registered without an id")
	}
	if err := d.checkFormer(ctx, reg); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.forgotten[info.ID] {
		return nil, &ForgottenError{Shard: info.ID}
	}
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Delete(metaKey(metaDirNamed + info.ID))
	b.Put(metaShardKey(info.ID), []byte(info.Addr))
	b.Put(metaKey(metaDirIncarnation+info.ID), binary.BigEndian.AppendUint64(nil, reg.Incarnation))
	accepted := uint64(0)
	if len(reg.Former) > 0 {
		accepted = reg.Former[0]
	}
	ranges := mergeReport(d.mu.ranges, info.ID, owned)
	lost := d.lostLocked(ranges, info.ID, owned)
	if len(lost) > 0 && accepted == 0 { // a new data directory under an old id
		return nil, &LostRangesError{Shard: info.ID, Lost: lost}
	}
	older, err := d.checkIncarnationLocked(info.ID, accepted, reg.Former...)
	if err != nil {
		return nil, err
	}
	if len(lost) > 0 && !older {
		return nil, &LostRangesError{Shard: info.ID, Lost: lost}
	}
	// The shard was accepted before, by a directory of which this one has no record.
	rebuilding := older || d.mu.incarnations[info.ID] == 0 && accepted != 0
	nextID := max(d.mu.nextID, idAbove(owned))
	if rebuilding {
		if err := checkTaken(ranges, info.ID, owned); err != nil {
			return nil, err
		}
		nextID = max(nextID, idAbove(owned)+rebuildIDs)
		d.opts.Logger.Error("a shard of an earlier directory has registered: this directory is being rebuilt", "shard", info.ID, "ranges", len(owned))
	}
	putNextID(b, nextID)
	var adopt []RangeDescriptor
	first := d.mu.plans[1]
	switch {
	case first == nil && len(ranges) == 0 && !rebuilding && !d.mu.lost:
		first = &plan{desc: RangeDescriptor{ID: 1, Epoch: 1, Shard: info.ID}, released: true}
		b.Put(metaIDKey(metaDirPlan, 1), appendPlan(nil, first))
		adopt = []RangeDescriptor{first.desc}
	case first != nil && first.desc.Shard == info.ID && len(owned) == 0:
		adopt = []RangeDescriptor{first.desc}
	case first != nil && first.desc.Shard == info.ID:
		b.Delete(metaIDKey(metaDirPlan, 1))
		first = nil
	}
	d.putRangesLocked(b, ranges)
	if err := d.opts.Engine.applySync(b); err != nil {
		return nil, err
	}
	d.mu.shards[info.ID], d.mu.ranges = info, ranges
	d.mu.incarnations[info.ID], d.mu.nextID = reg.Incarnation, nextID
	delete(d.mu.named, info.ID)
	delete(d.mu.plans, 1)
	if first != nil {
		d.mu.plans[1] = first
	}
	d.opts.Logger.Info("shard has registered", "shard", info.ID, "addr", info.Addr, "ranges", len(owned))
	return adopt, nil
}

// rebuildIDs is how far above the ids of its ranges those lie that a shard may have seen under a directory that was
// lost.
const rebuildIDs = 1 << 20

// idAbove returns an id above those of ranges.
func idAbove(ranges []RangeDescriptor) (id uint64) {
	for i := range ranges {
		id = max(id, ranges[i].ID+1)
	}
	return id
}

// checkTaken refuses a shard whose ranges were given to others: it belongs to another cluster, or a new store was the
// first to register with a directory that had been lost.
func checkTaken(ranges []RangeDescriptor, shard string, owned []RangeDescriptor) error {
	for i := range owned {
		for _, r := range overlapping(ranges, &owned[i].Span) {
			if r.Shard != shard {
				return fmt.Errorf("kv: range %d of shard %s belongs to shard %s in this directory, which does not know the shard: is it that of another cluster, or was it lost? Restore it, or begin with an empty one and stop shard %s",
					owned[i].ID, shard, r.Shard, r.Shard)
			}
		}
	}
	return nil
}

// lostLocked returns the ranges that a shard should own and does not. Ranges that it has yet to adopt do not count.
func (d *LocalDirectory) lostLocked(ranges []RangeDescriptor, shard string, owned []RangeDescriptor) []RangeDescriptor {
	owned = slices.Clone(owned)
	sortDescriptors(owned)
	var lost []RangeDescriptor
	for _, desc := range ranges {
		covered := len(overlapping(owned, &desc.Span)) > 0
		if desc.Shard == shard && !covered && d.mu.plans[desc.ID] == nil {
			lost = append(lost, desc)
		}
	}
	return lost
}

// ReportRanges implements Directory.
func (d *LocalDirectory) ReportRanges(_ context.Context, shard string, incarnation uint64, owned []RangeDescriptor) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.checkIncarnationLocked(shard, incarnation); err != nil || len(owned) == 0 {
		return err
	}
	ranges := mergeReport(d.mu.ranges, shard, owned)
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	d.putRangesLocked(b, ranges)
	if err := d.opts.Engine.applySync(b); err != nil {
		return err
	}
	d.mu.ranges = ranges
	return nil
}

// putRangesLocked writes the difference between the ranges and those to come.
func (d *LocalDirectory) putRangesLocked(b *storage.Batch, next []RangeDescriptor) {
	had := map[uint64]RangeDescriptor{}
	for _, desc := range d.mu.ranges {
		had[desc.ID] = desc
	}
	for i := range next {
		if old, ok := had[next[i].ID]; !ok || !equalDescriptors(&old, &next[i]) {
			b.Put(metaIDKey(metaDirRange, next[i].ID), appendDescriptor(nil, &next[i]))
		}
		delete(had, next[i].ID)
	}
	for id := range had {
		b.Delete(metaIDKey(metaDirRange, id))
	}
}

func equalDescriptors(a, b *RangeDescriptor) bool {
	return a.ID == b.ID && a.Epoch == b.Epoch && a.Shard == b.Shard &&
		bytes.Equal(a.Span.Start, b.Span.Start) && bytes.Equal(a.Span.End, b.Span.End)
}

// mergeReport returns the ranges after a shard has reported its ranges. Reports may be late: a range only shrinks with
// increasing epoch, so a range known at a higher epoch, or known to be another shard's, is kept. ranges are in key order
// and disjoint, as is the result.
func mergeReport(ranges []RangeDescriptor, shard string, owned []RangeDescriptor) []RangeDescriptor {
	epochs := make(map[uint64]uint64, len(ranges))
	for i := range ranges {
		epochs[ranges[i].ID] = ranges[i].Epoch
	}
	var news []RangeDescriptor
	for _, o := range owned {
		o.Shard = shard
		late := epochs[o.ID] > o.Epoch || slices.ContainsFunc(overlapping(ranges, &o.Span), func(r RangeDescriptor) bool { return r.Shard != shard })
		if !late {
			news = append(news, o)
		}
	}
	return replaceOverlapping(ranges, news)
}

// replaceOverlapping puts news, which are disjoint, in the place of whatever they overlap.
func replaceOverlapping(ranges, news []RangeDescriptor) []RangeDescriptor {
	sortDescriptors(news)
	ids := make(map[uint64]struct{}, len(news))
	for i := range news {
		ids[news[i].ID] = struct{}{}
	}
	next := slices.Clone(news)
	for _, r := range ranges {
		if _, replaced := ids[r.ID]; !replaced && len(overlapping(news, &r.Span)) == 0 {
			next = append(next, r)
		}
	}
	sortDescriptors(next)
	return next
}

// overlapping returns the part of disjoint ranges in key order that overlaps span.
func overlapping(ranges []RangeDescriptor, span *Span) []RangeDescriptor {
	first := sort.Search(len(ranges), func(i int) bool {
		end := ranges[i].Span.End
		return len(end) == 0 || bytes.Compare(end, span.Start) > 0
	})
	after := first
	for after < len(ranges) && ranges[after].Span.Overlaps(span) {
		after++
	}
	return ranges[first:after]
}

// carryOn executes plans that are not being executed: those found at the start, and those whose shards were unreachable.
func (d *LocalDirectory) carryOn() {
	const retry = 500 * time.Millisecond
	var warned time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.stopped.Done():
			return
		case <-timer.C:
		case <-d.wake:
		}
		warned = d.warnHeld(warned)
		if err := d.fillGaps(); err != nil {
			d.opts.Logger.Warn("vacant keys were not given to stores", "err", err)
		}
		for _, p := range d.idlePlans() {
			if err := d.drive(d.stopped, p); err != nil && d.stopped.Err() == nil {
				d.opts.Logger.Warn("range has not changed hands yet", "range_id", p.desc.ID, "err", err)
			}
		}
		timer.Reset(retry)
	}
}

// idlePlans claims the plans that are not being executed. The first range's is fulfilled by its shard.
func (d *LocalDirectory) idlePlans() []*plan {
	d.mu.Lock()
	defer d.mu.Unlock()
	var idle []*plan
	for _, p := range d.mu.plans {
		if !p.driving && p.source != "" {
			p.driving = true
			idle = append(idle, p)
		}
	}
	return idle
}
