package executor

import (
	"bytes"
	"context"
	"hash/maphash"

	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// leftGroup reads the left rows of a lookup join in growing groups, and numbers the distinct keys that they look up.
type leftGroup struct {
	ex   *execution
	left Operator
	keys keyBuilder

	expect  int // left rows expected to be enough, 0 for unknown
	group   int // size of the next group
	rows    rowBuffer
	slots   []int32 // by row: its key's number, -1 when NULL
	at      int     // the current row
	leftEnd bool

	seed     maphash.Seed
	table    hashTable // key numbers by the hash of the key, from 1
	distinct [][]byte  // keys by their number
	buf      []byte    // buffer of distinct
}

func newLeftGroup(ex *execution, left Operator, n *planner.LookupJoin) leftGroup {
	return leftGroup{
		ex: ex, left: left, keys: newKeyBuilder(&n.Access, n.Keys), expect: n.Limit,
		rows: rowBuffer{mem: &ex.mem}, seed: maphash.MakeSeed(),
	}
}

func (g *leftGroup) open(ctx context.Context) error {
	g.group, g.at, g.leftEnd = g.ex.firstGroup(), 0, false
	if g.expect > 0 {
		g.group = min(g.expect, g.ex.maxGroup)
	}
	g.rows.reset()
	return g.left.Open(ctx)
}

func (g *leftGroup) close() error {
	g.rows.release()
	return g.left.Close()
}

// take replaces the group by the next one.
func (g *leftGroup) take(ctx context.Context) error {
	g.rows.reset()
	g.table.reset()
	g.slots, g.distinct, g.buf, g.at = g.slots[:0], g.distinct[:0], g.buf[:0], 0
	for len(g.rows.rows) < g.group {
		row, err := g.left.Next(ctx)
		if err != nil {
			return err
		}
		if row == nil {
			g.leftEnd = true
			break
		}
		if err := g.rows.add(row); err != nil {
			return err
		}
		slot, err := g.slot(row)
		if err != nil {
			return err
		}
		g.slots = append(g.slots, slot)
	}
	g.group = g.ex.nextGroup(g.group)
	return nil
}

// slot returns the number of a left row's key among the group's keys, adding the key if it is new.
func (g *leftGroup) slot(row types.Row) (int32, error) {
	from := len(g.buf)
	buf, ok, err := g.keys.append(g.buf, &g.ex.ev, row)
	if !ok || err != nil {
		return -1, err
	}
	key := buf[from:len(buf):len(buf)]
	hash := maphash.Bytes(g.seed, key)
	for e := g.table.first(hash); e != 0; e = g.table.after(e, hash) {
		if bytes.Equal(g.distinct[e-1], key) {
			return int32(e - 1), nil
		}
	}
	g.buf = buf
	g.distinct = append(g.distinct, key)
	return int32(g.table.insert(hash) - 1), nil
}
