package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/percodb/percodb/tso"
)

// errPlanReplaced: a shard of the plan was forgotten while the plan was executed.
var errPlanReplaced = errors.New("kv: the plan was replaced, as a shard was forgotten")

// CreateRange implements Directory.
func (d *LocalDirectory) CreateRange(ctx context.Context, span Span) error {
	if !span.Valid() {
		return fmt.Errorf("create range: the span is empty")
	}
	p, err := d.makePlan(ctx, span)
	if p == nil || err != nil {
		return err
	}
	err = d.drive(ctx, p)
	if err != nil {
		d.opts.Logger.Warn("range has not changed hands yet", "range_id", p.desc.ID, "err", err)
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
	return err
}

// makePlan stores a plan to move span to the shard with the fewest ranges, or returns nil if the
// span cannot be moved. The caller drives the plan.
func (d *LocalDirectory) makePlan(ctx context.Context, span Span) (*plan, error) {
	source, targets := d.candidates(span)
	if source == "" {
		return nil, nil
	}
	// An unreachable shard neither receives nor releases a range.
	if !d.reachable(ctx, source) {
		return nil, nil
	}
	i := slices.IndexFunc(targets, func(shard string) bool { return shard == source || d.reachable(ctx, shard) })
	if i < 0 {
		return nil, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.mu.plans {
		if p.desc.Span.Overlaps(&span) {
			return nil, nil // it is being moved
		}
	}
	p := &plan{
		desc:        RangeDescriptor{ID: d.mu.nextID, Epoch: 1, Span: span, Shard: targets[i]},
		source:      source,
		remainderID: d.mu.nextID + 1,
		driving:     true,
	}
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	putNextID(b, d.mu.nextID+2)
	b.Put(metaIDKey(metaDirPlan, p.desc.ID), appendPlan(nil, p))
	if err := d.opts.Engine.applySync(b); err != nil {
		return nil, err
	}
	d.mu.nextID += 2
	d.mu.plans[p.desc.ID] = p
	return p, nil
}

// candidates returns the shard that owns span, "" if it does not lie in one range, and all shards in order of the number
// of their ranges.
func (d *LocalDirectory) candidates(span Span) (source string, targets []string) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	load := map[string]int{}
	for id := range d.mu.shards {
		load[id] = 0
		targets = append(targets, id)
	}
	for i := range d.mu.ranges {
		r := &d.mu.ranges[i]
		load[r.Shard]++
		if r.Span.ContainsSpan(&span) {
			source = r.Shard
		}
	}
	for _, p := range d.mu.plans {
		if !p.released {
			load[p.desc.Shard]++
		}
	}
	slices.SortFunc(targets, func(a, b string) int {
		if load[a] != load[b] {
			return load[a] - load[b]
		}
		return strings.Compare(a, b)
	})
	return source, targets
}

func (d *LocalDirectory) owner(ctx context.Context, shard string) (RangeOwner, error) {
	d.mu.RLock()
	info, ok := d.mu.shards[shard]
	d.mu.RUnlock()
	if !ok {
		return nil, &UnavailableError{Shard: shard, Err: ErrNoShard}
	}
	return d.opts.Dial(ctx, info)
}

func (d *LocalDirectory) reachable(ctx context.Context, shard string) bool {
	owner, err := d.owner(ctx, shard)
	if err == nil {
		_, err = owner.NumRanges(ctx)
	}
	if err != nil {
		d.opts.Logger.Warn("shard cannot be reached", "shard", shard, "err", err)
	}
	return err == nil
}

// drive carries a plan on to its end. On an error it stays for carryOn.
func (d *LocalDirectory) drive(ctx context.Context, p *plan) (err error) {
	defer func() {
		d.mu.Lock()
		p.driving = false
		d.mu.Unlock()
	}()
	if !p.released {
		kept, err := d.release(ctx, p)
		if kept || err != nil {
			return err
		}
	}
	maxTS := tso.Timestamp(p.maxTS)
	if p.source == noSource {
		if maxTS, err = d.fenceVacant(ctx); err != nil {
			return err
		}
	}
	target, err := d.owner(ctx, p.desc.Shard)
	if err == nil {
		err = target.AdoptRange(ctx, &AdoptRangeRequest{Desc: p.desc, MaxTS: maxTS})
	}
	if err != nil {
		return fmt.Errorf("adopt range %d: %w", p.desc.ID, err)
	}
	return d.removePlan(p)
}

// release requests that the source release the span; kept reports that it does not, and that the plan is canceled.
func (d *LocalDirectory) release(ctx context.Context, p *plan) (kept bool, err error) {
	source, err := d.owner(ctx, p.source)
	if err != nil {
		return false, err
	}
	res, err := source.ReleaseSpan(ctx, &ReleaseSpanRequest{Plan: p.desc.ID, Span: p.desc.Span, RemainderID: p.remainderID})
	if err != nil {
		return false, fmt.Errorf("release range %d: %w", p.desc.ID, err)
	}
	if !res.Released {
		return true, d.removePlan(p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.plans[p.desc.ID] != p {
		return false, errPlanReplaced
	}
	ranges := mergeReport(d.mu.ranges, p.source, res.Owned)
	ranges = replaceOverlapping(cutSpan(ranges, &p.desc.Span), []RangeDescriptor{p.desc})
	next := *p
	next.released, next.maxTS = true, uint64(res.MaxTS)
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Put(metaIDKey(metaDirPlan, p.desc.ID), appendPlan(nil, &next))
	d.putRangesLocked(b, ranges)
	if err := d.opts.Engine.applySync(b); err != nil {
		return false, err
	}
	p.released, p.maxTS = true, next.maxTS
	d.mu.ranges = ranges
	return false, nil
}

// cutSpan removes ranges that lie completely in span: all of their keys have been given away.
func cutSpan(ranges []RangeDescriptor, span *Span) []RangeDescriptor {
	return slices.DeleteFunc(slices.Clone(ranges), func(r RangeDescriptor) bool { return span.ContainsSpan(&r.Span) })
}

func (d *LocalDirectory) removePlan(p *plan) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.plans[p.desc.ID] != p {
		return errPlanReplaced
	}
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Delete(metaIDKey(metaDirPlan, p.desc.ID))
	if err := d.opts.Engine.applySync(b); err != nil {
		return err
	}
	delete(d.mu.plans, p.desc.ID)
	return nil
}

// appendPlan encodes: descriptor, len source, source, remainder id(8), released(1), max_ts(8).
func appendPlan(dst []byte, p *plan) []byte {
	dst = appendDescriptor(dst, &p.desc)
	dst = appendBytes(dst, []byte(p.source))
	dst = binary.BigEndian.AppendUint64(dst, p.remainderID)
	released := byte(0)
	if p.released {
		released = 1
	}
	dst = append(dst, released)
	return binary.BigEndian.AppendUint64(dst, p.maxTS)
}

func decodePlan(b []byte) (*plan, error) {
	desc, rest, err := decodeDescriptor(b)
	if err != nil {
		return nil, err
	}
	source, rest, err := cutBytes(rest)
	if err != nil || len(rest) != 17 || rest[8] > 1 {
		return nil, errMalformedMeta
	}
	return &plan{
		desc: desc, source: string(source), remainderID: binary.BigEndian.Uint64(rest),
		released: rest[8] == 1, maxTS: binary.BigEndian.Uint64(rest[9:]),
	}, nil
}
