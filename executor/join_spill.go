package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// joinSpill joins right rows that do not fit into memory, as a Grace hash join. Both sides are divided by bits of their
// keys' hashes into parts, lists in one temporary file, and then joined part by part.
//
//	right rows ─┐                      ┌─ part 0: right rows, left rows
//	            ├─ bits 0-4 of hash ───┼─ part 1 ── too large ── bits 5-9 ──┬─ part 1.0
//	left rows  ─┘                      └─ part 31                           └─ part 1.31
//
// A part with too many right rows is divided again, unless a division has been useless because nearly all rows have one
// key. Such a part is joined in blocks: as many right rows as fit into memory with all left rows, repeatedly. The bitmap
// earlier then marks the left rows that found a partner in a previous block, and only the last block returns those that
// found none.
//
// Rows are returned by parts, in no order; the planner assumes no order of a hash join.
type joinSpill struct {
	file *tempFile
	todo []joinPart
	part joinPart // being joined
	last bool     // the block in memory is the part's last

	rightIn, leftIn tempReader
	earlier         bitmap // by left row of the part; nil while the part has one block
	booked          int64  // for earlier
	leftAt          int    // the left row at hand
	nulls           uint64 // rows with NULL keys that were dealt
}

// joinPart is a part of both sides: rows whose hashes agree in the bits of so many levels as depth.
type joinPart struct {
	right, left tempList
	depth       int
	whole       bool // a further division would be useless
}

// spill divides both sides: the block, the remaining right rows, and all left rows.
func (j *hashJoin) spill(ctx context.Context) error {
	file, err := j.ex.newTempFile()
	if err != nil {
		return err
	}
	j.spilled = &joinSpill{file: file, last: true}
	parts := j.spilled.newParts(1)
	for _, row := range j.build.rows {
		if err := j.ex.tick(ctx); err != nil {
			return err
		}
		key, hasNull, err := j.right.keys.eval(&j.ex.ev, row)
		if err != nil {
			return err
		}
		if err := j.dealRow(&j.right, parts, row, key, hasNull); err != nil {
			return err
		}
	}
	j.dropBlock()
	j.leftDone = true // there is no block to probe yet
	if err := j.deal(ctx, &j.right, parts); err != nil {
		return err
	}
	if err := j.deal(ctx, &j.left, parts); err != nil {
		return err
	}
	j.join(parts)
	return nil
}

// divide puts smaller parts in the place of the part at hand.
func (j *hashJoin) divide(ctx context.Context) error {
	s := j.spilled
	parts := s.newParts(s.part.depth + 1)
	j.dropBlock()
	s.rightIn.open(&s.part.right, maxReadBytes)
	if err := j.deal(ctx, &j.right, parts); err != nil {
		return err
	}
	s.part.right.drop()
	s.leftIn.open(&s.part.left, maxReadBytes)
	j.left.list = &s.leftIn
	if err := j.deal(ctx, &j.left, parts); err != nil {
		return err
	}
	s.part.left.drop()
	j.join(parts)
	return nil
}

func (s *joinSpill) newParts(depth int) []joinPart {
	parts := make([]joinPart, partCount)
	for i := range parts {
		p := &parts[i]
		p.depth, p.right.file, p.left.file = depth, s.file, s.file
	}
	return parts
}

// deal hands a side's rows out to the parts, to its end.
func (j *hashJoin) deal(ctx context.Context, side *keyedInput, parts []joinPart) error {
	for {
		row, key, hasNull, err := side.next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			break
		}
		if err := j.ex.tick(ctx); err != nil {
			return err
		}
		if err := j.dealRow(side, parts, row, key, hasNull); err != nil {
			return err
		}
	}
	for i := range parts {
		if err := errors.Join(parts[i].right.finish(), parts[i].left.finish()); err != nil {
			return err
		}
	}
	return nil
}

// dealRow puts a row into its part, unless it cannot make a difference. The right side is dealt first.
func (j *hashJoin) dealRow(side *keyedInput, parts []joinPart, row, key types.Row, hasNull bool) error {
	var at uint64
	if hasNull {
		// It matches nothing in any part; rows with NULL are distributed evenly, so that no part becomes large.
		j.spilled.nulls++
		at = j.spilled.nulls % partCount
	} else {
		at = partAt(side.keys.hash(key), parts[0].depth-1)
	}
	p := &parts[at]
	if side == &j.right {
		if hasNull && j.kind != planner.FullJoin {
			return nil
		}
		return p.right.add(key[:side.width], row)
	}
	if (hasNull || p.right.rows == 0) && j.matchesOnly() {
		return nil
	}
	return p.left.add(key[:side.width], row)
}

// matchesOnly reports whether left rows without partner produce no row.
func (j *hashJoin) matchesOnly() bool {
	return j.kind == planner.InnerJoin || j.kind == planner.SemiJoin
}

// join has those parts joined that can yield anything.
func (j *hashJoin) join(parts []joinPart) {
	var total int64
	for i := range parts {
		total += parts[i].right.rows
	}
	for i := range parts {
		p := &parts[i]
		if p.left.rows == 0 && j.kind != planner.FullJoin || p.right.rows == 0 && j.matchesOnly() {
			p.right.drop()
			p.left.drop()
			continue
		}
		p.whole = p.right.rows > total/4*3 || p.depth == maxPartDepth
		j.spilled.todo = append(j.spilled.todo, *p)
	}
}

// nextBlock loads the next right rows into memory and restarts the left rows; false if all blocks are done.
func (j *hashJoin) nextBlock(ctx context.Context) (bool, error) {
	s := j.spilled
	if s == nil {
		return false, nil
	}
	for {
		first := s.last
		if first && !j.nextPart() {
			return false, nil
		}
		j.dropBlock()
		all, err := j.fill(ctx)
		if err != nil {
			return false, err
		}
		if first && !all && !s.part.whole {
			if err := j.divide(ctx); err != nil {
				return false, err
			}
			continue
		}
		if first && !all {
			if err := s.remember(&j.ex.mem); err != nil {
				return false, err
			}
		}
		s.last, s.leftAt = all, -1
		s.leftIn.open(&s.part.left, maxReadBytes)
		j.left.list, j.leftDone, j.have = &s.leftIn, false, false
		return true, nil
	}
}

// nextPart advances to the next part; false if there is none.
func (j *hashJoin) nextPart() bool {
	s := j.spilled
	s.forget(&j.ex.mem)
	s.part.right.drop()
	s.part.left.drop()
	if len(s.todo) == 0 {
		return false
	}
	n := len(s.todo) - 1
	s.part, s.todo = s.todo[n], s.todo[:n]
	s.rightIn.open(&s.part.right, maxReadBytes)
	j.right.list = &s.rightIn
	return true
}

// dropBlock empties the table.
func (j *hashJoin) dropBlock() {
	j.matched, j.rest = nil, 0
	j.table.reset()
	j.build.reset()
	j.keys.reset()
}

// dropSpill gives up the file.
func (j *hashJoin) dropSpill() error {
	s := j.spilled
	if s == nil {
		return nil
	}
	s.forget(&j.ex.mem)
	j.tempBytes = s.file.bytes()
	j.spilled, j.left.list, j.right.list = nil, nil, nil
	return s.file.close()
}

// spilledBytes implements spiller.
func (j *hashJoin) spilledBytes() int64 {
	if j.spilled != nil {
		return j.spilled.file.bytes()
	}
	return j.tempBytes
}

// remember begins to mark the left rows of the part that have found a partner.
func (s *joinSpill) remember(mem *statementMemory) error {
	n := s.part.left.rows
	if err := mem.grow(n / 8); err != nil {
		return err
	}
	s.earlier, s.booked = newBitmap(int(n)), n/8
	return nil
}

func (s *joinSpill) forget(mem *statementMemory) {
	mem.shrink(s.booked)
	s.earlier, s.booked = nil, 0
}

// skipsLeft applies the marks of earlier blocks to the next left row, and reports whether the row is finished.
func (j *hashJoin) skipsLeft() bool {
	s := j.spilled
	if s.earlier == nil {
		return false
	}
	s.leftAt++
	j.found = s.earlier.has(s.leftAt)
	j.have = !j.found || j.kind != planner.SemiJoin && j.kind != planner.AntiJoin
	return !j.have
}

// noteFound marks the current left row.
func (s *joinSpill) noteFound() {
	if s.earlier != nil {
		s.earlier.set(s.leftAt)
	}
}
