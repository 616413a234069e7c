package executor

import (
	"context"
	"errors"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// hashJoin builds a table of the right rows by key and probes it with each left row. NULL keys match nothing, so right
// rows with a NULL key are kept for a full join only.
//
// Right rows that do not fit into memory are joined in parts (joinSpill). The rows in memory are a block: all right
// rows, or those of a part, or as many of a part as fit.
type hashJoin struct {
	joinOutput
	left, right keyedInput
	node        *planner.HashJoin
	feed        *feed // where right rows come from in any order; nil: from right

	table   hashTable // entry e is row e-1 of build
	build   rowBuffer
	keys    rowBuffer // the key of row i, unless the hash determines it
	matched bitmap    // full join
	ready   bool
	single  bool       // of right rows with equal keys one is enough
	mayNot  bool       // some column has a type that cannot be written to a file
	spilled *joinSpill // nil: the block is all there is
	// tempBytes is the size of the removed file.
	tempBytes int64

	have      bool // a left row is being probed
	found     bool // and has found a partner
	hash      uint64
	key       types.Row
	candidate uint32
	leftDone  bool
	rest      int // full join: the next right row to return after the left side has ended
}

func newHashJoin(ex *execution, left, right Operator, n *planner.HashJoin) *hashJoin {
	j := &hashJoin{
		joinOutput: newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Right.Columns())),
		left:       newKeyedInput(ex, left, n.LeftKeys), right: newKeyedInput(ex, right, n.RightKeys),
		build: rowBuffer{mem: &ex.mem}, keys: rowBuffer{mem: &ex.mem}, node: n, single: n.SingleKeys(),
	}
	if n.Build.Fed {
		j.feed = newFeed(right)
	}
	stored := append(typesOf(n.Left), typesOf(n.Right)...)
	j.mayNot = !storable(stored) || !storable(j.left.keys.types) || !storable(j.right.keys.types)
	return j
}

func (j *hashJoin) Open(ctx context.Context) error {
	j.ready, j.have, j.leftDone, j.rest, j.tempBytes = false, false, false, 0, 0
	if err := j.left.op.Open(ctx); err != nil {
		return err
	}
	return j.right.op.Open(ctx)
}

func (j *hashJoin) Close() error {
	return errors.Join(j.release(), closeBoth(j.left.op, j.right.op))
}

// release frees the join's memory and its file.
func (j *hashJoin) release() error {
	j.table, j.matched = hashTable{}, nil
	j.build.release()
	j.keys.release()
	return j.dropSpill()
}

func (j *hashJoin) Next(ctx context.Context) (types.Row, error) {
	if !j.ready {
		if err := j.begin(ctx); err != nil {
			return nil, err
		}
		j.ready = true
	}
	for {
		row, err := j.nextOfBlock(ctx)
		if row != nil || err != nil {
			return row, err
		}
		more, err := j.nextBlock(ctx)
		if err != nil {
			return nil, err
		}
		if !more {
			// Others may need the memory before Close.
			return nil, j.release()
		}
	}
}

// begin reads the right side.
func (j *hashJoin) begin(ctx context.Context) error {
	all, err := j.fill(ctx)
	if all || err != nil {
		return err
	}
	return j.spill(ctx)
}

// nextOfBlock yields the next row that the block at hand gives rise to.
func (j *hashJoin) nextOfBlock(ctx context.Context) (types.Row, error) {
	if j.table.len() == 0 && j.matchesOnly() {
		return nil, nil
	}
	for !j.leftDone {
		if !j.have {
			if err := j.nextLeft(ctx); err != nil {
				return nil, err
			}
			continue
		}
		row, err := j.probe(ctx)
		if row != nil || err != nil {
			return row, err
		}
	}
	return j.nextUnmatchedRight(), nil
}

// fill reads right rows into the table, to the side's end or until they hold too much; all reports
// the end.
func (j *hashJoin) fill(ctx context.Context) (all bool, err error) {
	full := j.kind == planner.FullJoin
	if j.feed != nil {
		if all, err := j.fillFed(ctx); all || err != nil {
			return all, err
		}
	}
	for {
		if !j.mayNot && j.ex.mem.crowded(j.build.held+j.keys.held) {
			break
		}
		row, key, hasNull, err := j.right.next(ctx)
		if err != nil {
			return false, err
		}
		if row == nil {
			all = true
			break
		}
		if err := j.ex.tick(ctx); err != nil {
			return false, err
		}
		if hasNull && !full {
			continue
		}
		// In a full join a row with NULLs is added to the table too, so that entries and rows have the same numbers; see
		// sameKey.
		if err := j.addBuild(row, key, hasNull); err != nil {
			return false, err
		}
	}
	if full {
		j.matched = newBitmap(len(j.build.rows))
	}
	return all, nil
}

func (j *hashJoin) addBuild(row, key types.Row, hasNull bool) error {
	hash := j.right.keys.hash(key)
	if j.single && j.hasRight(key, hash) {
		return nil
	}
	if err := j.build.book(entryBytes); err != nil {
		return err
	}
	if err := j.build.add(row); err != nil {
		return err
	}
	if hasNull {
		hash = mix(uint64(j.table.len())) // no left row matches it: avoid a long chain of such rows
	}
	j.table.insert(hash)
	// Computed keys are kept; the exact ones are in the hash.
	if j.right.keys.exact && j.kind != planner.FullJoin {
		return nil
	}
	return j.keys.add(key)
}

// hasRight reports whether the table has a row with a key, which has no NULL.
func (j *hashJoin) hasRight(key types.Row, hash uint64) bool {
	e := j.table.first(hash)
	for e != 0 && !j.right.keys.exact && !j.right.keys.equal(j.keys.rows[e-1], key) {
		e = j.table.after(e, hash)
	}
	return e != 0
}

// nextLeft fetches the next left row and its first candidate.
func (j *hashJoin) nextLeft(ctx context.Context) error {
	row, key, hasNull, err := j.left.next(ctx)
	if err != nil {
		return err
	}
	if row == nil {
		j.leftDone = true
		return nil
	}
	j.have, j.found, j.candidate = true, false, 0
	if j.spilled != nil && j.skipsLeft() {
		return j.ex.tick(ctx)
	}
	j.setLeft(row)
	if hasNull {
		return nil
	}
	j.key, j.hash = key, j.left.keys.hash(key)
	j.candidate = j.table.first(j.hash)
	return nil
}

// probe finds the left row's next partner and returns the joined row; nil if the left row is finished.
func (j *hashJoin) probe(ctx context.Context) (types.Row, error) {
	for j.candidate != 0 {
		e := j.candidate
		j.candidate = j.table.after(e, j.hash)
		if err := j.ex.tick(ctx); err != nil {
			return nil, err
		}
		if !j.sameKey(e) {
			continue
		}
		ok, err := j.matches(j.build.rows[e-1])
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		j.found = true
		if j.spilled != nil {
			j.spilled.noteFound()
		}
		switch j.kind {
		case planner.SemiJoin:
			j.have = false
			return j.leftOnly(), nil
		case planner.AntiJoin:
			j.have = false
			return nil, nil
		case planner.FullJoin:
			j.matched.set(int(e - 1))
		}
		return j.joined, nil
	}
	j.have = false
	if j.found {
		return nil, nil
	}
	if j.spilled != nil && !j.spilled.last {
		return nil, j.ex.tick(ctx) // a block to come may have a partner
	}
	return j.unmatched(), j.ex.tick(ctx)
}

// sameKey compares entry e's key with the left row's, of equal hash.
func (j *hashJoin) sameKey(e uint32) bool {
	if len(j.keys.rows) == 0 {
		return true
	}
	key := j.keys.rows[e-1]
	for i := range key {
		if key[i].IsNull() {
			return false
		}
	}
	return j.left.keys.equal(key, j.key)
}

// nextUnmatchedRight returns the right rows of a full join that have found no partner.
func (j *hashJoin) nextUnmatchedRight() types.Row {
	if j.kind != planner.FullJoin {
		return nil
	}
	for ; j.rest < len(j.build.rows); j.rest++ {
		if !j.matched.has(j.rest) {
			j.setLeft(nil)
			j.setRight(j.build.rows[j.rest])
			j.rest++
			return j.joined
		}
	}
	return nil
}
