package check

import (
	"bytes"
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/partition"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/types"
)

// conditions are what the definitions of a table say of each row on its own.
type conditions struct {
	checks    []planner.Check
	generated []planner.GeneratedColumn
	ev        expr.Context
}

// bindConditions binds the CHECK constraints of the table that are not NOT VALID, and its generated columns.
func (c *tableChecker) bindConditions(ctx context.Context) error {
	c.conditions.ev = expr.Context{Ctx: ctx, Env: c.env}
	var err error
	if c.conditions.generated, err = planner.BindGenerated(ctx, c.t, c.resolver, c.env); err != nil {
		return c.found(c.t, nil, nil, "generated columns cannot be bound: %v", err)
	}
	checks, err := planner.BindChecks(ctx, c.t, c.resolver, c.env)
	if err != nil {
		return c.found(c.t, nil, nil, "CHECK constraints cannot be bound: %v", err)
	}
	for i := range checks {
		if !c.t.Checks[i].NotValid {
			c.conditions.checks = append(c.conditions.checks, checks[i])
		}
	}
	return nil
}

// meets compares a row with its table's conditions.
func (c *tableChecker) meets(key []byte, row types.Row) error {
	ev := &c.conditions.ev
	for i := range c.conditions.checks {
		ck := &c.conditions.checks[i]
		v, err := ck.Cond.Eval(ev, row)
		switch {
		case err != nil:
			err = c.found(c.t, nil, key, "CHECK constraint %q: %v", ck.Name, err)
		case !v.IsNull() && !v.Bool():
			err = c.found(c.t, nil, key, "row violates the CHECK constraint %q", ck.Name)
		}
		if err != nil {
			return err
		}
	}
	for _, g := range c.conditions.generated {
		col := c.t.ColumnAt(g.Ordinal)
		v, err := g.Value.Eval(ev, row)
		if err != nil {
			err = c.found(c.t, nil, key, "generated column %q: %v", col.Name, err)
		} else if same, sameErr := sameValue(col.Type, v, row[g.Ordinal]); sameErr != nil {
			err = sameErr
		} else if !same {
			err = c.found(c.t, nil, key, "generated column %q is not what its expression gives", col.Name)
		}
		if err != nil {
			return err
		}
	}
	return c.ofDomains(key, row)
}

// sameValue reports whether two values are stored alike.
func sameValue(t types.Type, a, b types.Datum) (bool, error) {
	if a.IsNull() || b.IsNull() {
		return a.IsNull() == b.IsNull(), nil
	}
	x, err := rowenc.AppendValue(nil, t, a)
	if err != nil {
		return false, err
	}
	y, err := rowenc.AppendValue(nil, t, b)
	return bytes.Equal(x, y), err
}

// ofDomains compares the values of columns whose types are domains with the constraints of these.
func (c *tableChecker) ofDomains(key []byte, row types.Row) error {
	domains := c.env.Format.Domains
	if domains == nil {
		return nil
	}
	for i := range c.t.Columns {
		col := &c.t.Columns[i]
		if !col.Type.IsDomain() {
			continue
		}
		if err := domains.CheckDomain(col.Type.Def, row[i]); err != nil {
			if err := c.found(c.t, nil, key, "column %q: %v", col.Name, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// partitions checks that a partitioned table and its partitions list each other, and that no two bounds have a row in common.
func (k *checker) partitions(ctx context.Context, t *catalog.TableDescriptor) error {
	if t.IsPartition() {
		parent, err := k.resolver.RelationByID(ctx, t.PartitionOf.Parent)
		if err != nil {
			return err
		}
		if parent == nil || !parent.IsPartitioned() || !slices.Contains(parent.Partitioning.Partitions, t.ID) {
			if err := k.found(t, nil, nil, "table %d, of which it is a partition, does not list it", t.PartitionOf.Parent); err != nil {
				return err
			}
		}
	}
	if !t.IsPartitioned() {
		return nil
	}
	var bounds []catalog.PartitionBound
	for _, id := range t.Partitioning.Partitions {
		part, err := k.resolver.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if part == nil || part.PartitionOf == nil || part.PartitionOf.Parent != t.ID {
			if err := k.found(t, nil, nil, "relation %d is listed and is not a partition of it", id); err != nil {
				return err
			}
			continue
		}
		bounds = append(bounds, part.PartitionOf.Bound)
	}
	return k.overlaps(t, bounds)
}

// overlaps checks the bounds of the partitions of t against each other.
func (k *checker) overlaps(t *catalog.TableDescriptor, list []catalog.PartitionBound) error {
	for i := range list {
		if list[i].Default {
			continue
		}
		others, err := partition.New(t, slices.Delete(slices.Clone(list), i, i+1))
		if err != nil {
			return k.found(t, nil, nil, "bounds of partitions: %v", err)
		}
		at, _, err := others.Overlaps(t, &list[i])
		if err == nil && at >= i { // Each pair is reported once.
			err = k.found(t, nil, nil, "partitions %s and %s overlap", list[i].Text, list[at+1].Text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
