package percolator

import "github.com/percodb/percodb/percolator/sortrun"

// pendingRun is a run that is sorted and written by another goroutine while the transaction goes on.
//
//	log    0 ……… 9 │ 10 ……… 19 │ 20 ……… 24
//	       run 0     spilling    in memory
//
// It lies between the runs and the entries in memory until settle has made it a run. No savepoint and no iterator lies
// within it: the entries that are lost if it fails are those of one statement, which waits for it in VerifyNew.
type pendingRun struct {
	entries writeBuffer // as they were in memory
	ready   chan struct{}
	// Once ready is closed:
	run *sortrun.Run
	err error
	bug any // see panicOf
}

// spillBeside moves all entries in memory to a file as spill does, without waiting for it. Whether it succeeds is learnt
// by settle. With a savepoint or an iterator within the entries it does not return before they are in the file.
func (b *writeBuffer) spillBeside(dir string) error {
	if b.frozen > 0 {
		return b.spill(dir)
	}
	if err := b.settle(); err != nil || b.n == 0 {
		return err
	}
	w, err := b.beginRun(dir)
	if err != nil {
		return err
	}
	s := &pendingRun{ready: make(chan struct{})}
	s.entries = writeBuffer{first: b.first, rest: b.rest, n: b.n, base: b.base, memBytes: b.memBytes}
	b.first, b.rest, b.spilling = b.newChunk(), nil, s
	b.base += b.n
	b.empty()
	go func() {
		defer close(s.ready)
		s.bug = panicOf(func() {
			s.run, s.err = s.entries.writeRun(w)
			s.entries.clear()
		})
	}()
	return nil
}

// settle makes a run of the entries that are being written, if there are any. Who reads the runs calls it before. It
// returns the error of a run that has failed, until its entries have been rolled back.
func (b *writeBuffer) settle() error {
	if s := b.spilling; s != nil {
		if <-s.ready; s.bug != nil {
			panic(s.bug)
		}
		b.spilling = nil
		from, to, size := s.entries.base, s.entries.base+s.entries.n, s.entries.memBytes
		b.spare = append(b.spare, s.entries.first[:0])
		for _, chunk := range s.entries.rest {
			b.spare = append(b.spare, chunk[:0])
		}
		if s.err != nil {
			b.spilled.failed = &failedRun{from: from, sizeBytes: size, err: s.err}
		} else {
			b.spilled.add(spilledRun{run: s.run, from: from, limit: to, sizeBytes: size})
		}
	}
	if b.spilled == nil {
		return nil
	}
	return b.spilled.failure(b.len())
}

// failedRun has entries of the log that are lost.
type failedRun struct {
	from      int // the first
	sizeBytes int64
	err       error
}

// failure returns why a reader of the first bound entries of the log cannot have all of them.
func (s *spilled) failure(bound int) error {
	if s.failed == nil || bound <= s.failed.from {
		return nil
	}
	return s.failed.err
}
