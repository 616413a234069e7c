package executor

import (
	"context"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// hashJoin builds a table of the right rows by key and probes it with each left row. NULL keys match
// nothing, so right rows with one are kept for a full join only.
type hashJoin struct {
	joinOutput
	left, right         Operator
	leftKeys, rightKeys keyColumns

	table   hashTable // entry e is row e-1 of build
	build   rowBuffer
	keys    rowBuffer // the key of row i, unless it is exact
	matched bitmap    // full join
	ready   bool

	have      bool // a left row is being probed
	found     bool // and has found a partner
	hash      uint64
	key       types.Row
	candidate uint32
	leftDone  bool
	rest      int // full join: the next right row to look at, once left is done
}

func newHashJoin(ex *execution, left, right Operator, n *planner.HashJoin) *hashJoin {
	j := &hashJoin{
		joinOutput: newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Right.Columns())),
		left:       left, right: right,
		leftKeys: newKeyColumns(n.LeftKeys), rightKeys: newKeyColumns(n.RightKeys),
		build: rowBuffer{mem: &ex.mem}, keys: rowBuffer{mem: &ex.mem},
	}
	return j
}

func (j *hashJoin) Open(ctx context.Context) error {
	j.ready, j.have, j.leftDone, j.rest = false, false, false, 0
	if err := j.left.Open(ctx); err != nil {
		return err
	}
	return j.right.Open(ctx)
}

func (j *hashJoin) Close() error {
	j.table, j.matched = hashTable{}, nil
	j.build.release()
	j.keys.release()
	return closeBoth(j.left, j.right)
}

func (j *hashJoin) Next(ctx context.Context) (types.Row, error) {
	if !j.ready {
		if err := j.buildTable(ctx); err != nil {
			return nil, err
		}
		j.ready = true
	}
	if j.table.len() == 0 && (j.kind == planner.InnerJoin || j.kind == planner.SemiJoin) {
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

// buildTable reads the right side.
func (j *hashJoin) buildTable(ctx context.Context) error {
	full := j.kind == planner.FullJoin
	for {
		row, err := j.right.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			break
		}
		if err := j.ex.tick(ctx); err != nil {
			return err
		}
		key, hasNull, err := j.rightKeys.eval(&j.ex.ev, row)
		if err != nil {
			return err
		}
		if hasNull && !full {
			continue
		}
		// In a full join a row with NULLs takes a place in the table too, so that entries and rows
		// stay in step; see sameKey.
		if err := j.addBuild(row, key); err != nil {
			return err
		}
	}
	if full {
		j.matched = newBitmap(len(j.build.rows))
	}
	return nil
}

func (j *hashJoin) addBuild(row, key types.Row) error {
	if err := j.build.book(entryBytes); err != nil {
		return err
	}
	if err := j.build.add(row); err != nil {
		return err
	}
	hash := j.rightKeys.hash(key)
	j.table.insert(hash)
	// Computed keys are kept; the exact ones are in the hash.
	if j.rightKeys.exact && j.kind != planner.FullJoin {
		return nil
	}
	return j.keys.add(key)
}

// nextLeft fetches the next left row and its first candidate.
func (j *hashJoin) nextLeft(ctx context.Context) error {
	row, err := j.left.Next(ctx)
	if err != nil {
		return err
	}
	if row == nil {
		j.leftDone = true
		return nil
	}
	key, hasNull, err := j.leftKeys.eval(&j.ex.ev, row)
	if err != nil {
		return err
	}
	j.have, j.found, j.candidate = true, false, 0
	j.setLeft(row)
	if hasNull {
		return nil
	}
	j.key, j.hash = key, j.leftKeys.hash(key)
	j.candidate = j.table.first(j.hash)
	return nil
}

// probe looks for the left row's next partner and returns what is to be yielded for it; nil when the
// left row is finished.
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
	return j.leftKeys.equal(key, j.key)
}

// nextUnmatchedRight yields what a full join has left over.
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
