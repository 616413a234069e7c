package check

import (
	"context"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/types"
)

// sequence checks that a sequence's value lies within its bounds.
func (k *checker) sequence(ctx context.Context, t *catalog.TableDescriptor) error {
	q := t.Sequence
	if q.Increment == 0 || q.Min > q.Max || q.Start < q.Min || q.Start > q.Max {
		if err := k.found(t, nil, nil, "options contradict each other: start %d, increment %d, min %d, max %d", q.Start, q.Increment, q.Min, q.Max); err != nil {
			return err
		}
	}
	last, _, err := catalog.StoredSequenceValue(ctx, k.txn, t)
	if err != nil {
		return k.found(t, nil, nil, "value cannot be read: %v", err)
	}
	if last < q.Min || last > q.Max {
		return k.found(t, nil, nil, "value %d is outside of %d … %d", last, q.Min, q.Max)
	}
	return nil
}

// drawn is a column of integers that takes its values from a sequence of its own, with the value that the sequence must have passed.
type drawn struct {
	sequence *catalog.TableDescriptor
	ordinal  int
	any      bool // a row has a value
	furthest int64
}

// bindSequences finds the columns of the table whose values come from sequences.
func (c *tableChecker) bindSequences(ctx context.Context) error {
	for i := range c.t.Columns {
		col := &c.t.Columns[i]
		if col.Sequence == 0 {
			continue
		}
		switch col.Type.OID {
		case types.TInt2.OID, types.TInt4.OID, types.TInt8.OID:
		default:
			continue
		}
		seq, err := c.resolver.RelationByID(ctx, col.Sequence)
		if err != nil {
			return err
		}
		if seq != nil && seq.Kind == catalog.KindSequence && !seq.Sequence.Cycle {
			c.drawn = append(c.drawn, drawn{sequence: seq, ordinal: i})
		}
	}
	return nil
}

// draws takes the values of a row.
func (c *tableChecker) draws(row types.Row) {
	for i := range c.drawn {
		d := &c.drawn[i]
		if v := row[d.ordinal]; !v.IsNull() && (!d.any || d.isBeyond(v.Int(), d.furthest)) {
			d.any, d.furthest = true, v.Int()
		}
	}
}

// isBeyond reports whether the sequence reaches a value after another one.
func (d *drawn) isBeyond(v, other int64) bool {
	if d.sequence.Sequence.Increment > 0 {
		return v > other
	}
	return v < other
}

// behind notes sequences that will reach values which rows have already. That is so if their values were lost; it is also so if users have given such values
// themselves.
func (c *tableChecker) behind(ctx context.Context) error {
	for i := range c.drawn {
		d := &c.drawn[i]
		if !d.any {
			continue
		}
		last, called, err := catalog.StoredSequenceValue(ctx, c.txn, d.sequence)
		if err != nil {
			continue // Reported with the sequence.
		}
		if d.isBeyond(d.furthest, last) || d.furthest == last && !called {
			c.note(d.sequence, "is at %d, and column %q of %s.%s, which takes its values from it, has %d", last, c.t.Columns[d.ordinal].Name, c.t.Schema, c.t.Name, d.furthest)
		}
	}
	return ctx.Err()
}
