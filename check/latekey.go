package check

import (
	"context"

	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// lateChecker looks for rows that conflict under a deferrable unique or an exclusion constraint.
type lateChecker struct {
	key    *planner.LateKey
	seeker *entries.Seeker
}

// bindLateKeys prepares the checks of constraints that are checked late.
func (c *tableChecker) bindLateKeys(ctx context.Context) error {
	for i := range c.t.Indexes {
		ix := &c.t.Indexes[i]
		if !ix.CheckedLate() {
			continue
		}
		key, err := planner.BindLateKey(ctx, c.t, ix, c.resolver, c.env)
		if err != nil {
			if err := c.found(c.t, ix, nil, "the constraint cannot be bound: %v", err); err != nil {
				return err
			}
			continue
		}
		seeker, err := entries.NewSeeker(key, &expr.Context{Ctx: ctx, Env: c.env})
		if err != nil {
			return err
		}
		c.late = append(c.late, &lateChecker{key: key, seeker: seeker})
	}
	return nil
}

// conflicts reports the rows that conflict with a row.
func (c *tableChecker) conflicts(ctx context.Context, key []byte, row types.Row) error {
	for _, l := range c.late {
		ok, err := l.seeker.Begin(row)
		if err != nil {
			return c.found(c.t, l.key.Index, key, "the constraint cannot be checked: %v", err)
		}
		if !ok {
			continue
		}
		other, err := l.seeker.Find(ctx, c.txn, key)
		if err != nil {
			return err
		}
		if other != nil {
			if err := c.found(c.t, l.key.Index, key, "conflicts with the row under %x", other); err != nil {
				return err
			}
		}
	}
	return nil
}
