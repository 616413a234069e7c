package executor

import (
	"context"

	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// Rows with keys are divided by the lowest bits of their hashes first, then by the next ones.
const (
	partBits  = 5
	partCount = 1 << partBits
	// maxPartDepth leaves the hash's high bits to the tables.
	maxPartDepth = 8
)

// partAt returns the number of the part, out of partCount, of a hash among rows that have been divided depth times.
func partAt(hash uint64, depth int) uint64 { return hash >> (depth * partBits) % partCount }

// keyedInput is rows with their keys, from an operator, or back from a file.
type keyedInput struct {
	ex   *execution
	op   Operator
	keys keyColumns
	// width is the number of key columns in front of a row in a file: 0 if all are plain columns. Computed keys are
	// stored, so that they are computed once.
	width int
	// list is the source of rows unless it is nil.
	list *tempReader
}

func newKeyedInput(ex *execution, op Operator, keys []expr.Scalar) keyedInput {
	s := keyedInput{ex: ex, op: op, keys: newKeyColumns(keys)}
	for _, k := range keys {
		if _, plain := k.(*expr.Column); !plain {
			s.width = len(keys)
		}
	}
	return s
}

// next returns the next row and its key, both valid until the following call; hasNull reports that a value of the key is
// NULL.
func (s *keyedInput) next(ctx context.Context) (row, key types.Row, hasNull bool, err error) {
	if s.list != nil {
		return s.nextListed()
	}
	if row, err = s.op.Next(ctx); row == nil || err != nil {
		return nil, nil, false, err
	}
	key, hasNull, err = s.keys.eval(&s.ex.ev, row)
	return row, key, hasNull, err
}

// nextListed is next for rows in a file.
func (s *keyedInput) nextListed() (row, key types.Row, hasNull bool, err error) {
	stored, err := s.list.next()
	if stored == nil || err != nil {
		return nil, nil, false, err
	}
	if s.width == 0 {
		key, hasNull, err = s.keys.eval(&s.ex.ev, stored)
		return stored, key, hasNull, err
	}
	key = stored[:s.width:s.width]
	for i := range key {
		hasNull = hasNull || key[i].IsNull()
	}
	return stored[s.width:], key, hasNull, nil
}

// overflow is for operators that keep one entry for each distinct key of their input: groups, keys seen. When memory is
// full, rows of further keys are written to parts by their keys' hashes; then, with the memory empty again, each part is
// processed like the input.
//
//	input ──▶ rows of the keys in memory ──▶ processed
//	      └─▶ rows of other keys ──▶ part 0 … part 31 ──▶ each is the input of a later pass
//
// Rows of one key stay in their order. Every pass finishes as many keys as fit into memory, so the process terminates
// even if hashes do not distinguish keys.
type overflow struct {
	in     keyedInput
	mayNot bool // some value has a type that cannot be written to a file
	file   *tempFile
	parts  []tempList // rows set aside in this pass; nil: none so far
	todo   []overflowPart
	part   overflowPart // the input of this pass; zero: the operator's input
	reader tempReader
	gone   int64 // size of the removed file
}

// overflowPart is rows whose hashes agree in the bits of so many levels as depth.
type overflowPart struct {
	rows  tempList
	depth int
}

func newOverflow(in keyedInput, rows []types.Type) overflow {
	return overflow{in: in, mayNot: !storable(rows) || !storable(in.keys.types)}
}

// full reports that no further key may be kept in this pass, given the size of those kept. Once true it stays true,
// because the rows of one key must not be separated.
func (o *overflow) full(held int64) bool {
	return o.parts != nil || !o.mayNot && o.in.ex.mem.crowded(held)
}

// add sets a row aside, by the hash of its key.
func (o *overflow) add(row, key types.Row, hash uint64) error {
	if o.file == nil {
		file, err := o.in.ex.newTempFile()
		if err != nil {
			return err
		}
		o.file = file
	}
	if o.parts == nil {
		o.parts = make([]tempList, partCount)
		for i := range o.parts {
			o.parts[i].file = o.file
		}
	}
	at := partAt(hash, min(o.part.depth, maxPartDepth))
	return o.parts[at].add(key[:o.in.width], row)
}

// turn makes the next part the input; false if there is none, in which case the file is removed.
func (o *overflow) turn() (bool, error) {
	if o.file == nil {
		return false, nil
	}
	for i := range o.parts {
		p := overflowPart{rows: o.parts[i], depth: o.part.depth + 1}
		if err := p.rows.finish(); err != nil {
			return false, err
		}
		if p.rows.rows > 0 {
			o.todo = append(o.todo, p)
		}
	}
	o.part.rows.drop()
	o.parts = nil
	n := len(o.todo) - 1
	if n < 0 {
		return false, o.release()
	}
	o.part, o.todo = o.todo[n], o.todo[:n]
	o.reader.open(&o.part.rows, maxReadBytes)
	o.in.list = &o.reader
	return true, nil
}

// reset makes ready for a run over the operator's rows.
func (o *overflow) reset() { o.gone = 0 }

// release gives up the file, if there is one.
func (o *overflow) release() error {
	o.parts, o.todo, o.part, o.in.list = nil, nil, overflowPart{}, nil
	if o.file == nil {
		return nil
	}
	o.gone = o.file.bytes()
	f := o.file
	o.file = nil
	return f.close()
}

// spilledBytes implements spiller.
func (o *overflow) spilledBytes() int64 {
	if o.file != nil {
		return o.file.bytes()
	}
	return o.gone
}
