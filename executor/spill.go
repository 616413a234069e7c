package executor

import (
	"bufio"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// spill is the part of a sort that did not fit into memory: sorted runs, one behind the other in a
// temporary file without a name, so that nothing is left of it however the process ends.
//
//	run 0: row │ row │ …   run 1: row │ …      row: uvarint length, then datums as length and bytes
//
// Reading merges the runs; of equal keys the one from the earlier run comes first.
type spill struct {
	ex    *execution
	order *ordering
	file  *os.File
	w     *bufio.Writer
	runs  []*run
	size  int64 // bytes written
	buf   []byte
	heap  runHeap
	begun bool
}

// run is one sorted run; while it is merged, its first row not yet handed out.
type run struct {
	from, to int64
	in       *bufio.Reader
	bytes    []byte // what head's datums alias
	head     sorted
	seq      int
}

const (
	spillWriteBytes = 256 << 10
	// Readers share a bounded memory: many runs get small buffers each.
	spillReadBytes    = 4 << 20
	spillMinReadBytes = 4 << 10
	spillMaxReadBytes = 64 << 10
)

func newSpill(ex *execution, order *ordering) (*spill, error) {
	f, err := os.CreateTemp(ex.rt.TempDir, "percodb-sort-*")
	if err != nil {
		return nil, spillError(err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, spillError(errors.Join(err, f.Close()))
	}
	return &spill{ex: ex, order: order, file: f, w: bufio.NewWriterSize(f, spillWriteBytes)}, nil
}

// spillError explains a failure of the temporary file.
func spillError(err error) error {
	code := pgerror.IOError
	if errors.Is(err, syscall.ENOSPC) {
		code = pgerror.DiskFull
	}
	e := pgerror.New(code, "could not use a temporary file: %v", err)
	e.Cause = err
	return e.WithHint("Sorts larger than memory need room in the directory for temporary files (TMPDIR).")
}

// write appends a run.
func (s *spill) write(ctx context.Context, items []sorted) error {
	from := s.size
	for i := range items {
		if err := s.ex.tick(ctx); err != nil {
			return err
		}
		if err := s.writeRow(items[i].key); err != nil {
			return err
		}
	}
	s.runs = append(s.runs, &run{from: from, to: s.size, seq: len(s.runs)})
	return nil
}

func (s *spill) writeRow(row types.Row) error {
	// The datums are put behind room for the longest length.
	const room = binary.MaxVarintLen64
	buf := append(s.buf[:0], make([]byte, room)...)
	for _, d := range row {
		at := len(buf)
		buf = append(buf, 0)
		var err error
		if buf, err = rowenc.AppendDatum(buf, d); err != nil {
			return err
		}
		buf = prefixLength(buf, at)
	}
	s.buf = buf
	var head [room]byte
	n := binary.PutUvarint(head[:], uint64(len(buf)-room))
	copy(buf[room-n:], head[:n])
	k, err := s.w.Write(buf[room-n:])
	s.size += int64(k)
	if err != nil {
		return spillError(err)
	}
	return nil
}

// prefixLength puts the length of what follows b[at] there, making room if one byte is too few.
func prefixLength(b []byte, at int) []byte {
	n := len(b) - at - 1
	if n < 0x80 {
		b[at] = byte(n)
		return b
	}
	var head [binary.MaxVarintLen64]byte
	k := binary.PutUvarint(head[:], uint64(n))
	b = append(b, head[1:k]...)
	copy(b[at+k:], b[at+1:len(b)-k+1])
	copy(b[at:], head[:k])
	return b
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

// begin ends writing and opens all runs.
func (s *spill) begin() error {
	s.begun = true
	if err := s.w.Flush(); err != nil {
		return spillError(err)
	}
	s.w = nil
	size := min(max(spillReadBytes/len(s.runs), spillMinReadBytes), spillMaxReadBytes)
	s.heap.order = s.order
	for _, r := range s.runs {
		r.in = bufio.NewReaderSize(io.NewSectionReader(s.file, r.from, r.to-r.from), size)
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
	n, err := binary.ReadUvarint(r.in)
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, spillError(err)
	}
	if uint64(cap(r.bytes)) < n {
		r.bytes = make([]byte, n)
	}
	b := r.bytes[:n]
	if _, err := io.ReadFull(r.in, b); err != nil {
		return false, spillError(err)
	}
	r.head.key = r.head.key[:0]
	for len(b) > 0 {
		size, k := binary.Uvarint(b)
		if k <= 0 || size > uint64(len(b)-k) {
			return false, spillError(errors.New("a row is torn"))
		}
		d, err := rowenc.DecodeDatum(b[k : k+int(size)])
		if err != nil {
			return false, err
		}
		r.head.key = append(r.head.key, d)
		b = b[k+int(size):]
	}
	r.head.prefix = s.order.prefix(r.head.key)
	return true, nil
}

func (s *spill) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
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
	if a.head.prefix != b.head.prefix {
		return a.head.prefix < b.head.prefix
	}
	if c := h.order.compare(a.head.key, b.head.key); c != 0 {
		return c < 0
	}
	return a.seq < b.seq
}
