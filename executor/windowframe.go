package executor

import (
	"math"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// frame computes the frame of the current row. Its ends only move forward within a partition, since the rows are in order.
type frame struct {
	w       *window
	node    *planner.WindowFrame
	offsets [2]types.Datum // of the start and of the end
	head    frameEnd
	tail    frameEnd // the first row behind the frame
	parts   []span   // the frame without what is excluded
	storage [3]span
}

// frameEnd is an end of the frame: a position, and the number of its peer group, for frames in groups.
type frameEnd struct{ pos, group int64 }

// span is the positions from one up to, but not including, another.
type span struct{ from, to int64 }

// evalOffsets evaluates the offsets, once for an execution.
func (f *frame) evalOffsets() error {
	for i, b := range [2]*planner.WindowBound{&f.node.Start, &f.node.End} {
		if b.Offset == nil {
			continue
		}
		which := [2]string{"starting", "ending"}[i]
		d, err := b.Offset.Eval(&f.w.ex.ev, nil)
		switch {
		case err != nil:
			return err
		case d.IsNull():
			return pgerror.New(pgerror.NullValueNotAllowed, "frame %s offset must not be null", which)
		case f.node.Mode != ast.FrameRange && d.Int() < 0:
			return pgerror.New(pgerror.InvalidFrameOffset, "frame %s offset must not be negative", which)
		}
		f.offsets[i] = d.Clone()
	}
	return nil
}

func (f *frame) reset() { f.head, f.tail, f.parts = frameEnd{}, frameEnd{}, nil }

// update computes the frame of the current row.
func (f *frame) update() (err error) {
	if f.head.pos, err = f.start(); err != nil {
		return err
	}
	if f.tail.pos, err = f.end(); err != nil {
		return err
	}
	f.parts = f.storage[:0]
	if f.node.Exclude == ast.ExcludeNone {
		f.addPart(f.head.pos, f.tail.pos)
		return nil
	}
	out := span{f.w.pos, f.w.pos + 1}
	if f.node.Exclude != ast.ExcludeCurrentRow {
		out.from = f.w.group.head
		if out.to, err = f.w.groupTail(); err != nil {
			return err
		}
	}
	f.addPart(f.head.pos, min(f.tail.pos, out.from))
	if f.node.Exclude == ast.ExcludeTies {
		f.addPart(max(f.head.pos, f.w.pos), min(f.tail.pos, f.w.pos+1))
	}
	f.addPart(max(f.head.pos, out.to), f.tail.pos)
	return nil
}

func (f *frame) addPart(from, to int64) {
	if from < to {
		f.parts = append(f.parts, span{from, to})
	}
}

// start returns the position of the frame's first row.
func (f *frame) start() (int64, error) {
	b := &f.node.Start
	switch {
	case b.Kind == ast.UnboundedPreceding:
		return 0, nil
	case b.Kind == ast.CurrentRow && f.node.Mode == ast.FrameRows:
		return f.w.pos, nil
	case b.Kind == ast.CurrentRow:
		return f.w.group.head, nil
	}
	switch f.node.Mode {
	case ast.FrameRows:
		return f.limited(moved(f.w.pos, f.offsets[0].Int(), b.Kind))
	case ast.FrameGroups:
		err := f.seekGroup(&f.head, moved(f.w.group.number, f.offsets[0].Int(), b.Kind))
		return f.head.pos, err
	}
	return f.head.pos, f.seekValue(&f.head.pos, b, f.offsets[0], false)
}

// end returns the position of the first row behind the frame.
func (f *frame) end() (int64, error) {
	b := &f.node.End
	switch {
	case b.Kind == ast.UnboundedFollowing:
		return f.w.total()
	case b.Kind == ast.CurrentRow && f.node.Mode == ast.FrameRows:
		return f.w.pos + 1, nil
	case b.Kind == ast.CurrentRow:
		return f.w.groupTail()
	}
	switch f.node.Mode {
	case ast.FrameRows:
		return f.limited(moved(moved(f.w.pos, f.offsets[1].Int(), b.Kind), 1, ast.OffsetFollowing))
	case ast.FrameGroups:
		err := f.seekGroup(&f.tail, moved(moved(f.w.group.number, f.offsets[1].Int(), b.Kind), 1, ast.OffsetFollowing))
		return f.tail.pos, err
	}
	return f.tail.pos, f.seekValue(&f.tail.pos, b, f.offsets[1], true)
}

// moved returns a position moved by an offset, which is not negative.
func moved(pos, offset int64, kind ast.BoundKind) int64 {
	if kind == ast.OffsetPreceding {
		return pos - offset
	}
	if pos > 0 && offset > math.MaxInt64-pos {
		return math.MaxInt64
	}
	return pos + offset
}

// limited returns a position limited to those of the partition and of its end.
func (f *frame) limited(pos int64) (int64, error) {
	if pos <= 0 {
		return 0, nil
	}
	ok, err := f.w.exists(pos - 1)
	if ok || err != nil {
		return pos, err
	}
	return f.w.rows.n, nil
}

// seekGroup moves an end forward to the first row of a peer group.
func (f *frame) seekGroup(end *frameEnd, group int64) error {
	for end.group < group {
		ok, err := f.w.exists(end.pos)
		if !ok || err != nil {
			return err
		}
		if err := f.w.tick(); err != nil {
			return err
		}
		end.pos++
		if ok, err = f.w.exists(end.pos); !ok || err != nil {
			return err
		}
		same, err := f.w.peers(end.pos-1, end.pos)
		if err != nil {
			return err
		}
		if !same {
			end.group++
		}
	}
	return nil
}

// seekValue moves an end of a RANGE frame with an offset forward: the start to the first row not before the frame, the end
// to the first row behind it.
func (f *frame) seekValue(pos *int64, b *planner.WindowBound, offset types.Datum, isEnd bool) error {
	current, err := f.w.rows.at(f.w.pos)
	if err != nil {
		return err
	}
	key := &f.w.order.keys[0]
	column := f.w.order.at[0]
	// value is on the frame's side of the end if value >= base ± offset for the start, value <= base ± offset for the end.
	sub, less := b.Kind == ast.OffsetPreceding, isEnd
	if key.Desc {
		sub, less = !sub, !less
	}
	base := current[column]
	for {
		ok, err := f.w.exists(*pos)
		if !ok || err != nil {
			return err
		}
		row, err := f.w.rows.at(*pos)
		if err != nil {
			return err
		}
		stop, value := false, row[column]
		switch {
		case value.IsNull() || base.IsNull():
			stop = nullStops(value.IsNull(), base.IsNull(), key.NullsFirst, isEnd)
		default:
			in, err := b.InRange.Within(f.w.ex.ev.Env, value, base, offset, sub, less)
			if err != nil {
				return err
			}
			stop = in != isEnd
		}
		if stop {
			return nil
		}
		if err := f.w.tick(); err != nil {
			return err
		}
		*pos++
	}
}

// nullStops is the decision of seekValue where the value, the current row's or both are NULL: NULLs are peers of each other,
// and before or behind all values.
func nullStops(value, base, nullsFirst, isEnd bool) bool {
	switch {
	case isEnd && nullsFirst:
		return !value
	case isEnd:
		return !base
	case nullsFirst:
		return !value || base
	}
	return value || !base
}
