package executor

import (
	"container/heap"
	"context"

	"github.com/percodb/percodb/sql/types"
)

// spill is the part of a sort that did not fit into memory: sorted runs, each a list of rows in one
// temporary file. Reading merges the runs; of equal keys the one from the earlier run comes first.
type spill struct {
	ex    *execution
	order *ordering
	file  *tempFile
	runs  []*run
	heap  runHeap
	begun bool
}

// run is one sorted run; while it is merged, its first row not yet returned.
type run struct {
	list tempList
	in   tempReader
	head sorted
	seq  int
}

// Readers share a bounded memory: many runs get small buffers each.
const (
	spillReadBytes    = 4 << 20
	spillMinReadBytes = 4 << 10
)

func newSpill(ex *execution, order *ordering) (*spill, error) {
	f, err := ex.newTempFile()
	if err != nil {
		return nil, err
	}
	return &spill{ex: ex, order: order, file: f}, nil
}

// write appends a run, the rows of a sorted list.
func (s *spill) write(ctx context.Context, rows *sortList) error {
	r := &run{list: tempList{file: s.file}, seq: len(s.runs)}
	for i := range rows.len() {
		if err := s.ex.tick(ctx); err != nil {
			return err
		}
		if err := r.list.add(nil, rows.row(i)); err != nil {
			return err
		}
	}
	s.runs = append(s.runs, r)
	return r.list.finish()
}

// next returns the next row of the merge, keys included, or nil at the end.
func (s *spill) next() (types.Row, error) {
	if !s.begun {
		if err := s.begin(); err != nil {
			return nil, err
		}
	} else if len(s.heap.runs) > 0 {
		// The row handed out last is of the run on top.
		ok, err := s.advance(s.heap.runs[0])
		switch {
		case err != nil:
			return nil, err
		case ok:
			heap.Fix(&s.heap, 0)
		default:
			heap.Pop(&s.heap)
		}
	}
	if len(s.heap.runs) == 0 {
		return nil, nil
	}
	return s.heap.runs[0].head.key, nil
}

// begin opens all runs.
func (s *spill) begin() error {
	s.begun = true
	size := min(max(spillReadBytes/len(s.runs), spillMinReadBytes), maxReadBytes)
	s.heap.order = s.order
	for _, r := range s.runs {
		r.in.open(&r.list, size)
		ok, err := s.advance(r)
		if err != nil {
			return err
		}
		if ok {
			s.heap.runs = append(s.heap.runs, r)
		}
	}
	heap.Init(&s.heap)
	return nil
}

// advance reads a run's next row; false at its end.
func (s *spill) advance(r *run) (bool, error) {
	row, err := r.in.next()
	if row == nil || err != nil {
		return false, err
	}
	r.head.key = row
	r.head.prefix = s.order.prefix(row)
	return true, nil
}

// runHeap orders runs by their first rows.
type runHeap struct {
	order *ordering
	runs  []*run
}

func (h *runHeap) Len() int      { return len(h.runs) }
func (h *runHeap) Swap(i, j int) { h.runs[i], h.runs[j] = h.runs[j], h.runs[i] }
func (h *runHeap) Push(any)      { panic("runs are never added") }
func (h *runHeap) Pop() any {
	last := h.runs[len(h.runs)-1]
	h.runs = h.runs[:len(h.runs)-1]
	return last
}

func (h *runHeap) Less(i, j int) bool {
	a, b := h.runs[i], h.runs[j]
	if c := a.head.prefix.compare(b.head.prefix); c != 0 {
		return c < 0
	}
	if c := h.order.compareRest(a.head.key, b.head.key); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}
