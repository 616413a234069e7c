package kv

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/percodb/percodb/tso"
)

// A permanently lost shard keeps a lost directory from being trusted and its keys from being used, and makes garbage
// collection keep records for it. An operator excludes it: its ranges are created again, empty, on other shards. Locks
// on other shards of transactions whose primary key the lost shard had are rolled back.

// noSource is the source of a plan for a range that no shard releases, because its owner is lost.
const noSource = "\x00gone"

// ForgetShard implements Directory.
func (d *LocalDirectory) ForgetShard(ctx context.Context, shard string, dryRun bool) (ForgetResponse, error) {
	if err := d.checkGone(ctx, shard); err != nil {
		return ForgetResponse{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	info, registered := d.mu.shards[shard]
	if !registered && !d.mu.named[shard] {
		return ForgetResponse{}, fmt.Errorf("the cluster has no store %q: it has %s", shard, strings.Join(awaitedShards(d.knownLocked(), nil), ", "))
	}
	res := ForgetResponse{Addr: info.Addr, Registered: registered}
	for i := range d.mu.ranges {
		if d.mu.ranges[i].Shard == shard {
			res.Ranges++
		}
	}
	if dryRun {
		return res, nil
	}
	if err := d.forgetLocked(shard); err != nil {
		return res, err
	}
	d.opts.Logger.Warn("a store was excluded from the cluster", "store", shard, "ranges", res.Ranges)
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return res, d.settleLocked()
}

// checkGone refuses to forget a shard that answers.
func (d *LocalDirectory) checkGone(ctx context.Context, shard string) error {
	d.mu.RLock()
	info, registered := d.mu.shards[shard]
	d.mu.RUnlock()
	if !registered {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askFormer)
	defer cancel()
	owner, err := d.opts.Dial(ctx, info)
	if err != nil {
		return nil
	}
	if status, err := owner.Status(ctx); err == nil && status.Shard == shard {
		return fmt.Errorf("store %s answers at %s: it is not gone; stop it first, for good", shard, info.Addr)
	}
	return nil
}

// handOver returns ranges and plans without a shard: its ranges are planned for the others, those with the fewest first.
// IDs of new ranges begin at nextID.
func handOver(ranges []RangeDescriptor, plans map[uint64]*plan, shard string, others []string, nextID uint64) (next []RangeDescriptor, changed []*plan, dropped []uint64) {
	load := map[string]int{}
	for i := range ranges {
		load[ranges[i].Shard]++
	}
	target := func() string {
		least := slices.MinFunc(others, func(a, b string) int { return cmp.Or(cmp.Compare(load[a], load[b]), cmp.Compare(a, b)) })
		load[least]++
		return least
	}
	next = slices.DeleteFunc(slices.Clone(ranges), func(r RangeDescriptor) bool { return r.Shard == shard })
	for id, p := range plans {
		switch {
		case p.source == shard && !p.released:
			dropped = append(dropped, id) // the range around it is planned below
		case p.desc.Shard == shard:
			moved := *p
			moved.desc.Shard, moved.driving = target(), false
			if p.source == "" { // the first range, which no shard has adopted yet
				moved.source = noSource
			}
			changed = append(changed, &moved)
		}
	}
	for _, r := range ranges {
		if r.Shard == shard && !slices.ContainsFunc(changed, func(p *plan) bool { return p.desc.ID == r.ID }) {
			p := &plan{desc: RangeDescriptor{ID: nextID, Epoch: 1, Span: r.Span, Shard: target()}, source: noSource, released: true}
			nextID++
			changed = append(changed, p)
		}
	}
	for _, p := range changed {
		if p.released {
			next = replaceOverlapping(next, []RangeDescriptor{p.desc})
		}
	}
	return next, changed, dropped
}

// forgetLocked excludes a shard.
func (d *LocalDirectory) forgetLocked(shard string) error {
	var others []string
	for id := range d.mu.shards {
		if id != shard {
			others = append(others, id)
		}
	}
	_, registered := d.mu.shards[shard]
	if registered && len(others) == 0 {
		return fmt.Errorf("store %s is the only one: there is none to take its ranges", shard)
	}
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaDirForgotten+shard), []byte{1})
	b.Delete(metaShardKey(shard))
	b.Delete(metaKey(metaDirIncarnation + shard))
	b.Delete(metaKey(metaDirNamed + shard))
	b.Delete(metaKey(metaDirLockBound + shard))
	b.Delete(metaKey(metaGCCleared + shard))
	nextID, ranges := d.mu.nextID, d.mu.ranges
	var changed []*plan
	var dropped []uint64
	if registered {
		ranges, changed, dropped = handOver(d.mu.ranges, d.mu.plans, shard, others, nextID)
		for _, p := range changed {
			nextID = max(nextID, p.desc.ID+1)
			b.Put(metaIDKey(metaDirPlan, p.desc.ID), appendPlan(nil, p))
		}
		for _, id := range dropped {
			b.Delete(metaIDKey(metaDirPlan, id))
		}
		putNextID(b, nextID)
		d.putRangesLocked(b, ranges)
	}
	if err := d.opts.Engine.applySync(b); err != nil {
		return err
	}
	delete(d.mu.shards, shard)
	delete(d.mu.incarnations, shard)
	delete(d.mu.named, shard)
	delete(d.mu.lockBounds, shard)
	delete(d.mu.told, shard)
	d.mu.forgotten[shard] = true
	d.mu.nextID, d.mu.ranges = nextID, ranges
	for _, id := range dropped {
		delete(d.mu.plans, id)
	}
	for _, p := range changed {
		d.mu.plans[p.desc.ID] = p
	}
	return nil
}

// gaps lists the spans between disjoint ranges in key order.
func gaps(ranges []RangeDescriptor) (spans []Span) {
	var end []byte // of the ranges so far
	for i := range ranges {
		if !bytes.Equal(ranges[i].Span.Start, end) {
			spans = append(spans, Span{Start: end, End: ranges[i].Span.Start})
		}
		if end = ranges[i].Span.End; len(end) == 0 {
			return spans
		}
	}
	return append(spans, Span{Start: end})
}

// fillGaps assigns the keys that no shard of a lost directory has to shards: those of forgotten ones. It does so when
// all known shards have registered, with their ranges.
func (d *LocalDirectory) fillGaps() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.mu.lost || len(d.mu.forgotten) == 0 || d.mu.standing != standingSound || len(d.mu.named) > 0 || len(d.mu.shards) == 0 || len(d.mu.plans) > 0 {
		return nil
	}
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Delete(metaKey(metaDirLost))
	const noShard = ""
	vacant := slices.Clone(d.mu.ranges)
	nextID := d.mu.nextID
	for _, span := range gaps(d.mu.ranges) {
		vacant = append(vacant, RangeDescriptor{ID: nextID, Epoch: 1, Span: span, Shard: noShard})
		nextID++
	}
	sortDescriptors(vacant)
	ranges, filled, _ := handOver(vacant, nil, noShard, slices.Collect(maps.Keys(d.mu.shards)), nextID)
	for _, p := range filled {
		nextID = max(nextID, p.desc.ID+1)
		b.Put(metaIDKey(metaDirPlan, p.desc.ID), appendPlan(nil, p))
	}
	putNextID(b, nextID)
	d.putRangesLocked(b, ranges)
	if err := d.opts.Engine.applySync(b); err != nil {
		return err
	}
	d.mu.lost, d.mu.ranges, d.mu.nextID = false, ranges, nextID
	for _, p := range filled {
		d.mu.plans[p.desc.ID] = p
	}
	d.opts.Logger.Warn("all stores have registered: the directory of ranges is rebuilt", "vacant", len(filled))
	return nil
}

// fenceVacant returns a timestamp above those that the lost owner of a range can have served reads at.
func (d *LocalDirectory) fenceVacant(ctx context.Context) (tso.Timestamp, error) {
	if d.opts.Oracle == nil {
		return 0, nil
	}
	return d.opts.Oracle.Now(ctx)
}
