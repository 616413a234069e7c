package executor

import (
	"bytes"
	"context"
	"hash/maphash"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// uniqueLookupJoin reads the right row of each left row by a whole unique key. Left rows are taken
// in growing groups and each different key of a group is read once, all of them together.
type uniqueLookupJoin struct {
	joinOutput
	access
	left Operator
	keys keyBuilder

	expect  int // left rows expected to be enough, 0 for unknown
	group   int
	rows    rowBuffer // the group's left rows
	slots   []int32   // by left row: its key's number, -1 when NULL
	at      int
	leftEnd bool

	seed            maphash.Seed
	table           hashTable // key numbers by the hash of the key, from 1
	distinct        [][]byte
	rowKeys, values [][]byte // by key number
	buf             []byte   // what distinct is cut from
}

// newLookupJoin makes the operator that fits: groups of point reads, or a scan per left row.
func newLookupJoin(ex *execution, left Operator, n *planner.LookupJoin) (Operator, error) {
	out := newJoinOutput(ex, n.Kind, n.On, len(n.Left.Columns()), len(n.Ordinals))
	whole := len(n.Keys) == len(n.Index.Columns) && (n.Index.Unique || n.Index.ID == n.Table.Primary.ID)
	if !whole {
		j := &scanLookupJoin{joinOutput: out, left: left, keys: newKeyBuilder(&n.Access, n.Keys)}
		return j, j.spanReader.init(ex, &n.Access)
	}
	j := &uniqueLookupJoin{
		joinOutput: out, left: left, keys: newKeyBuilder(&n.Access, n.Keys),
		rows: rowBuffer{mem: &ex.mem}, seed: maphash.MakeSeed(), expect: n.Limit,
	}
	return j, j.access.init(ex, &n.Access)
}

func (j *uniqueLookupJoin) Open(ctx context.Context) error {
	ex := j.joinOutput.ex
	j.group, j.at, j.leftEnd = ex.firstGroup(), 0, false
	if j.expect > 0 {
		j.group = min(j.expect, ex.maxGroup)
	}
	j.rows.reset()
	return j.left.Open(ctx)
}

func (j *uniqueLookupJoin) Close() error {
	j.rows.release()
	j.rowKeys, j.values = nil, nil
	return j.left.Close()
}

func (j *uniqueLookupJoin) Next(ctx context.Context) (types.Row, error) {
	for {
		if j.at == len(j.rows.rows) {
			if j.leftEnd {
				return nil, nil
			}
			if err := j.fill(ctx); err != nil {
				return nil, err
			}
			continue
		}
		row, err := j.join()
		if row != nil || err != nil {
			return row, err
		}
		if err := j.joinOutput.ex.tick(ctx); err != nil {
			return nil, err
		}
	}
}

// fill takes the next group of left rows and reads their partners.
func (j *uniqueLookupJoin) fill(ctx context.Context) error {
	j.rows.reset()
	j.table.reset()
	j.slots, j.distinct, j.buf, j.at = j.slots[:0], j.distinct[:0], j.buf[:0], 0
	for len(j.rows.rows) < j.group {
		row, err := j.left.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			j.leftEnd = true
			break
		}
		if err := j.rows.add(row); err != nil {
			return err
		}
		slot, err := j.slot(row)
		if err != nil {
			return err
		}
		j.slots = append(j.slots, slot)
	}
	j.group = j.joinOutput.ex.nextGroup(j.group)
	if len(j.distinct) == 0 {
		return nil
	}
	var err error
	j.rowKeys, j.values, err = j.getMany(ctx, j.distinct)
	return err
}

// slot returns the number of a left row's key among the group's keys, adding it if it is new.
func (j *uniqueLookupJoin) slot(row types.Row) (int32, error) {
	from := len(j.buf)
	buf, ok, err := j.keys.append(j.buf, &j.joinOutput.ex.ev, row)
	if !ok || err != nil {
		return -1, err
	}
	key := buf[from:len(buf):len(buf)]
	hash := maphash.Bytes(j.seed, key)
	for e := j.table.first(hash); e != 0; e = j.table.after(e, hash) {
		if bytes.Equal(j.distinct[e-1], key) {
			return int32(e - 1), nil
		}
	}
	j.buf = buf
	j.distinct = append(j.distinct, key)
	return int32(j.table.insert(hash) - 1), nil
}

// join handles the next left row of the group; nil when it yields nothing.
func (j *uniqueLookupJoin) join() (types.Row, error) {
	i := j.at
	j.at++
	j.setLeft(j.rows.rows[i])
	slot := j.slots[i]
	if slot < 0 || j.values[slot] == nil {
		return j.unmatched(), nil
	}
	right, err := j.decode(j.rowKeys[slot], j.values[slot])
	if err != nil {
		return nil, err
	}
	ok, err := j.matches(right)
	if err != nil {
		return nil, err
	}
	if !ok {
		return j.unmatched(), nil
	}
	switch j.kind {
	case planner.SemiJoin:
		return j.leftOnly(), nil
	case planner.AntiJoin:
		return nil, nil
	}
	return j.joined, nil
}

// scanLookupJoin reads the right rows of each left row by a scan of a key prefix.
type scanLookupJoin struct {
	joinOutput
	spanReader
	left        Operator
	keys        keyBuilder
	have, found bool
}

func (j *scanLookupJoin) Open(ctx context.Context) error {
	j.have = false
	return j.left.Open(ctx)
}

func (j *scanLookupJoin) Close() error {
	j.stop()
	return j.left.Close()
}

func (j *scanLookupJoin) Next(ctx context.Context) (types.Row, error) {
	ex := j.joinOutput.ex
	for {
		if err := ex.tick(ctx); err != nil {
			return nil, err
		}
		if !j.have {
			row, err := j.left.Next(ctx)
			if row == nil || err != nil {
				return nil, err
			}
			if err := j.lookup(row); err != nil {
				return nil, err
			}
		}
		row, err := j.probe(ctx)
		if row != nil || err != nil {
			return row, err
		}
	}
}

// lookup starts the scan for a left row.
func (j *scanLookupJoin) lookup(row types.Row) error {
	j.have, j.found = true, false
	j.setLeft(row)
	prefix, ok, err := j.keys.append(nil, &j.joinOutput.ex.ev, row)
	if err != nil {
		return err
	}
	if !ok {
		j.start(nil)
		return nil
	}
	j.start([]kv.Span{{Start: prefix, End: rowenc.PrefixEnd(prefix)}})
	return nil
}

// probe takes the scan's next row that matches; nil when the left row is finished.
func (j *scanLookupJoin) probe(ctx context.Context) (types.Row, error) {
	for {
		right, err := j.next(ctx)
		if err != nil {
			return nil, err
		}
		if right == nil {
			j.have = false
			if j.found {
				return nil, nil
			}
			return j.unmatched(), nil
		}
		ok, err := j.matches(right)
		if err != nil {
			return nil, err
		}
		if !ok {
			if err := j.joinOutput.ex.tick(ctx); err != nil {
				return nil, err
			}
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
		}
		return j.joined, nil
	}
}
