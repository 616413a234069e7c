package executor

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/types"
)

// actionMoves stores rows that the actions of foreign keys move to other partitions.
type actionMoves struct {
	modify
	parts *parts
	row   types.Row
	fired int // of leaves, whose triggers are listed
}

// movesOf returns what moves the rows of the table that has a foreign key.
func (k *keyChecks) movesOf(key *planner.ForeignKey) *actionMoves {
	if m := k.moves[key.Moves]; m != nil {
		return m
	}
	table := key.Declared.Table
	m := &actionMoves{row: make(types.Row, len(table.Columns))}
	m.begin(k.ex, nil, newTableWriter(k.ex, table, nil, nil, nil, nil), nil)
	m.parts = newParts(&m.modify, table, key.Moves)
	m.parts.once = true
	if k.moves == nil {
		k.moves = map[*planner.Parts]*actionMoves{}
	}
	k.moves[key.Moves] = m
	return m
}

// move has an action delete a child, and insert its new row where that belongs.
func (k *keyChecks) move(ctx context.Context, w *tableWriter, g *triggers, key *planner.ForeignKey, old, next types.Row) error {
	m := k.movesOf(key)
	from := key.Moves.ByOID[int64(key.Child.OID())]
	for i, ord := range key.Moves.Leaves[from].ToRoot {
		m.row[i] = types.Null
		if ord >= 0 && !m.parts.table.Columns[i].Hidden {
			m.row[i] = next[ord]
		}
	}
	if ok, err := g.before(ctx, catalog.TriggerDelete, old, nil); !ok || err != nil {
		return err
	}
	if err := w.unmodified(ctx, old, "updated"); err != nil {
		return err
	}
	k.changed[w.table.ID]++
	if err := w.moveOut(ctx, old, next, m.parts.table); err != nil {
		return err
	}
	if err := g.written(catalog.TriggerDelete, old, nil); err != nil {
		return err
	}
	if err := m.parts.insert(ctx, m.row); err != nil {
		return err
	}
	for ; m.fired < len(m.leaves); m.fired++ {
		if g := m.leaves[m.fired].triggers; g != nil {
			k.fired = append(k.fired, g)
		}
	}
	return nil
}

// finish writes the rows.
func (m *actionMoves) finish(ctx context.Context) error {
	if m == nil {
		return nil
	}
	return m.write(ctx)
}

// discard forgets rows that have not been written.
func (m *actionMoves) discard() {
	for _, l := range m.leaves {
		l.writer.sink.discard()
	}
	m.fired = 0
}
