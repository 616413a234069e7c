package ddl

import (
	"context"

	"github.com/percodb/percodb/percolator"
)

// aheadRows is how many rows of a scan are handed over together, fewer if they have aheadBytes, and aheadBatches how many
// such batches there are.
const (
	aheadRows    = 512
	aheadBytes   = 256 << 10
	aheadBatches = 4
)

// pairs are keys and values of consecutive rows, one after the other.
type pairs struct {
	data []byte
	ends []int
}

// readAhead calls f with the keys and values of it, which another goroutine reads while f runs; they are f's until it
// returns. it must not read what f writes.
func readAhead(caller context.Context, it percolator.Iterator, f func(key, value []byte) error) error {
	ctx, cancel := context.WithCancel(caller)
	full, free := make(chan *pairs, aheadBatches), make(chan *pairs, aheadBatches)
	for range aheadBatches {
		free <- new(pairs)
	}
	go func() {
		defer close(full)
		for more := true; more; {
			select {
			case p := <-free:
				more = p.fill(ctx, it)
				full <- p // There are no more batches than it holds.
			case <-ctx.Done():
				return
			}
		}
	}()
	err := eachPair(full, free, f)
	cancel()
	for range full { // until the reader has ended
	}
	if err == nil {
		err = it.Err()
	}
	if err == nil {
		err = caller.Err() // for which the reader may have ended early
	}
	return err
}

// fill reads the next rows, and reports whether there may be more.
func (p *pairs) fill(ctx context.Context, it percolator.Iterator) (more bool) {
	if cap(p.data) > 2*aheadBytes {
		p.data = nil // of a long row
	}
	p.data, p.ends = p.data[:0], p.ends[:0]
	for len(p.ends) < 2*aheadRows && len(p.data) < aheadBytes {
		if !it.Next(ctx) {
			return false
		}
		p.data = append(p.data, it.Key()...)
		p.ends = append(p.ends, len(p.data))
		p.data = append(p.data, it.Value()...)
		p.ends = append(p.ends, len(p.data))
	}
	return true
}

// eachPair calls f with the rows of all batches of full, which then go to free.
func eachPair(full <-chan *pairs, free chan<- *pairs, f func(key, value []byte) error) error {
	for p := range full {
		start := 0
		for i := 0; i < len(p.ends); i += 2 {
			mid, end := p.ends[i], p.ends[i+1]
			if err := f(p.data[start:mid:mid], p.data[mid:end:end]); err != nil {
				return err
			}
			start = end
		}
		free <- p
	}
	return nil
}
