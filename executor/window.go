package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// window adds the results of window functions to rows that arrive in the order of their window. It reads a partition only
// as far as the functions need, and keeps of it only the rows that they may still need.
type window struct {
	ex    *execution
	input Operator
	node  *planner.WindowAgg
	keys  keyColumns
	order ordering
	calls []windowFunction
	out   types.Row

	rows     windowStore
	frame    frame
	first    groupKey  // the partition's key
	ahead    types.Row // the first row of the next partition, owned by the input
	complete bool      // rows contains the whole partition
	ended    bool      // the input has no more rows
	begun    bool
	pos      int64 // the current row's
	group    peerGroup
	needs    windowNeeds
}

// windowNeeds is what of a partition the calls of a window need.
type windowNeeds struct {
	frame, groups bool
	// all: any row may be needed again. back is the number of rows before the current one that may be.
	all  bool
	back int64
	// fromHead: rows may be needed from the frame's first on.
	fromHead bool
}

// peerGroup is the group of rows that are equal to the current one in the window's order.
type peerGroup struct {
	head, number int64
	tail         int64 // the first row behind it; 0: not known yet
}

// windowFunction computes one call for the current row.
type windowFunction interface {
	reset()
	value() (types.Datum, error)
}

func newWindow(ex *execution, input Operator, n *planner.WindowAgg) *window {
	o := &window{
		ex: ex, input: input, node: n, keys: newKeyColumns(n.PartitionBy), order: newRowOrdering(n.OrderBy),
		out: make(types.Row, len(n.Out)),
	}
	o.rows = windowStore{ex: ex, mayNot: !storable(typesOf(n.Input))}
	o.first.buf.mem = &ex.mem
	o.frame = frame{w: o, node: &n.Frame}
	o.needs.back = 1
	for i := range n.Calls {
		o.calls = append(o.calls, o.newCall(&n.Calls[i]))
	}
	exclude := n.Frame.Exclude
	o.needs.groups = o.needs.groups || o.needs.frame && (n.Frame.Mode != ast.FrameRows || exclude == ast.ExcludeGroup || exclude == ast.ExcludeTies)
	return o
}

// newCall makes the function of a call, and notes what it needs.
func (o *window) newCall(c *planner.WindowCall) windowFunction {
	if c.Agg != nil {
		o.needs.frame = true
		return o.newAggregate(c)
	}
	switch kind := c.Func.Kind; kind {
	case builtin.Lag:
		o.needLag(c)
	case builtin.FirstValue, builtin.LastValue, builtin.NthValue:
		o.needs.frame, o.needs.fromHead = true, true
	case builtin.Rank, builtin.DenseRank, builtin.PercentRank, builtin.CumeDist:
		o.needs.groups = true
	}
	return &windowValue{w: o, call: c}
}

// needLag notes how far back lag may look: as far as its offset, if that is one for all rows.
func (o *window) needLag(c *planner.WindowCall) {
	if len(c.Args) < 2 {
		return
	}
	if k, ok := c.Args[1].(*expr.Const); ok && k.Value.Kind() == types.KindInt {
		o.needs.back = max(o.needs.back, k.Value.Int())
		return
	}
	o.needs.all = true
}

func (o *window) Open(ctx context.Context) error {
	o.begun, o.ended, o.complete, o.ahead = false, false, true, nil
	o.rows.tempBytes = 0
	return o.input.Open(ctx)
}

func (o *window) Close() error {
	for _, c := range o.calls {
		c.reset()
	}
	o.first.buf.release()
	o.ahead = nil
	return errors.Join(o.rows.release(), o.input.Close())
}

// spilledBytes implements spiller.
func (o *window) spilledBytes() int64 { return o.rows.spilledBytes() }

func (o *window) Next(ctx context.Context) (types.Row, error) {
	if !o.begun {
		// The offsets are evaluated, and refused, even if there are no rows.
		if err := o.frame.evalOffsets(); err != nil {
			return nil, err
		}
		o.begun, o.pos = true, -1
		o.rows.reset()
	}
	o.pos++
	ok, err := o.exists(o.pos)
	if err != nil {
		return nil, err
	}
	if !ok {
		if more, err := o.nextPartition(); !more || err != nil {
			return nil, err
		}
	}
	o.trim()
	row, err := o.rows.at(o.pos)
	if err != nil {
		return nil, err
	}
	if err := o.findGroup(); err != nil {
		return nil, err
	}
	if o.needs.frame {
		if err := o.frame.update(); err != nil {
			return nil, err
		}
	}
	n := copy(o.out, row)
	for i, c := range o.calls {
		if o.out[n+i], err = c.value(); err != nil {
			return nil, err
		}
	}
	return o.out, nil
}

// nextPartition begins the next partition; false if there is none.
func (o *window) nextPartition() (bool, error) {
	o.rows.reset()
	o.frame.reset()
	for _, c := range o.calls {
		c.reset()
	}
	o.pos, o.group, o.complete = 0, peerGroup{}, false
	row, err := o.pull()
	if row == nil || err != nil {
		return false, err
	}
	if len(o.keys.exprs) > 0 {
		key, _, err := o.keys.eval(&o.ex.ev, row)
		if err != nil {
			return false, err
		}
		o.first.buf.reset()
		if err := o.first.buf.add(key); err != nil {
			return false, err
		}
	}
	return true, o.rows.add(row)
}

// pull returns the next row of the input, nil at the end.
func (o *window) pull() (types.Row, error) {
	if row := o.ahead; row != nil {
		o.ahead = nil
		return row, nil
	}
	if o.ended {
		return nil, nil
	}
	row, err := o.input.Next(o.ex.ev.Ctx)
	o.ended = row == nil && err == nil
	return row, err
}

func (o *window) tick() error { return o.ex.tick(o.ex.ev.Ctx) }

// exists reports whether the partition has a row at a position, and reads as far.
func (o *window) exists(pos int64) (bool, error) {
	for pos >= o.rows.n && !o.complete {
		if err := o.tick(); err != nil {
			return false, err
		}
		row, err := o.pull()
		if err != nil {
			return false, err
		}
		if row == nil {
			o.complete = true
			break
		}
		same, err := o.belongs(row)
		if err != nil {
			return false, err
		}
		if !same {
			o.ahead, o.complete = row, true
			break
		}
		if err := o.rows.add(row); err != nil {
			return false, err
		}
	}
	return pos < o.rows.n, nil
}

// belongs reports whether a row belongs to the partition.
func (o *window) belongs(row types.Row) (bool, error) {
	if len(o.keys.exprs) == 0 {
		return true, nil
	}
	key, _, err := o.keys.eval(&o.ex.ev, row)
	return err == nil && o.keys.equal(o.first.buf.rows[0], key), err
}

// total reads the whole partition and returns the number of its rows.
func (o *window) total() (int64, error) {
	const last = 1<<63 - 1
	_, err := o.exists(last)
	return o.rows.n, err
}

// peers reports whether two rows are equal in the window's order.
func (o *window) peers(a, b int64) (bool, error) {
	if len(o.order.keys) == 0 {
		return true, nil
	}
	x, err := o.rows.at(a)
	if err != nil {
		return false, err
	}
	y, err := o.rows.at(b)
	return err == nil && o.order.compare(x, y) == 0, err
}

// findGroup finds the peer group of the current row, whose predecessor's is known.
func (o *window) findGroup() error {
	if !o.needs.groups || o.pos == 0 || o.pos < o.group.tail {
		return nil
	}
	same, err := o.group.tail != o.pos, error(nil)
	if same {
		same, err = o.peers(o.pos-1, o.pos)
	}
	if err == nil && !same {
		o.group = peerGroup{head: o.pos, number: o.group.number + 1}
	}
	return err
}

// groupTail returns the position of the first row behind the current row's peers.
func (o *window) groupTail() (int64, error) {
	if o.group.tail > 0 {
		return o.group.tail, nil
	}
	if len(o.order.keys) == 0 {
		n, err := o.total()
		o.group.tail = n
		return n, err
	}
	for tail := o.pos + 1; ; tail++ {
		ok, err := o.exists(tail)
		if err != nil {
			return 0, err
		}
		same := false
		if ok {
			if same, err = o.peers(tail-1, tail); err != nil {
				return 0, err
			}
		}
		if !same {
			o.group.tail = tail
			return tail, nil
		}
		if err := o.tick(); err != nil {
			return 0, err
		}
	}
}

// trim drops the rows that are not needed any more.
func (o *window) trim() {
	if o.needs.all || o.pos < segmentRows {
		return
	}
	keep := o.pos - o.needs.back
	if o.needs.frame {
		n := o.node.Frame
		moves := n.Start.Kind != ast.UnboundedPreceding
		switch {
		case moves:
			// The frame of the current row begins no earlier than that of the one before. Its ends are sought one by one.
			keep = min(keep, o.frame.head.pos, o.frame.tail.pos-1)
		case o.needs.fromHead || n.Exclude != ast.ExcludeNone:
			return
		default:
			keep = min(keep, o.frame.tail.pos-1)
		}
	}
	o.rows.trim(keep)
}
