package check

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/types"
)

// keyChecker looks for the parents of a table's rows by one foreign key, in groups.
type keyChecker struct {
	*planner.ForeignKey
	ev   expr.Context
	keys [][]byte // wanted
	rows [][]byte // the keys of the rows that want them
	buf  []byte
}

// bindKeys prepares the check of the table's foreign keys, but for those that are NOT VALID, and checks their descriptors.
func (c *tableChecker) bindKeys(ctx context.Context) error {
	if err := c.references(ctx); err != nil {
		return err
	}
	for i := range c.t.ForeignKeys {
		k := &c.t.ForeignKeys[i]
		if k.NotValid {
			continue
		}
		bound, err := planner.BindForeignKey(ctx, k, c.t, c.resolver, c.env)
		if err != nil {
			if err := c.found(c.t, nil, nil, "foreign key %q: %v", k.Name, err); err != nil {
				return err
			}
			continue
		}
		if !slices.Contains(bound.Parent.Referencing, c.t.ID) && bound.Parent.ID != c.t.ID {
			if err := c.found(c.t, nil, nil, "foreign key %q is not known to its parent %q", k.Name, bound.Parent.Name); err != nil {
				return err
			}
		}
		if err := c.keyParts(ctx, k, bound.Parent); err != nil {
			return err
		}
		if off, err := c.keyOff(ctx, bound); off || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		c.keys = append(c.keys, &keyChecker{ForeignKey: bound, ev: expr.Context{Ctx: ctx, Env: c.env}})
	}
	return nil
}

// keyOff reports whether rows are not checked, on either side, because DISABLE TRIGGER ALL says so.
func (c *tableChecker) keyOff(ctx context.Context, k *planner.ForeignKey) (bool, error) {
	off, err := catalog.KeyOff(ctx, c.resolver, c.t, k.Declared.Key.OID)
	if off || err != nil {
		return off, err
	}
	tree, err := catalog.PartitionTree(ctx, c.resolver, k.Parent)
	for _, t := range tree {
		off = off || slices.Contains(t.KeysOff, k.Declared.Key.OID)
	}
	return off, err
}

// keyParts checks that a foreign key lists the tables below its parent.
func (c *tableChecker) keyParts(ctx context.Context, k *catalog.ForeignKeyDescriptor, parent *catalog.TableDescriptor) error {
	tree, err := catalog.PartitionTree(ctx, c.resolver, parent)
	if err != nil {
		return err
	}
	below := tree[1:]
	if k.Inherited != 0 {
		below = nil
	}
	for _, t := range below {
		if !k.HasPart(t.ID) {
			if err := c.found(c.t, nil, nil, "foreign key %q does not list %q, which is below its parent", k.Name, t.Name); err != nil {
				return err
			}
		}
	}
	if len(k.Parts) > len(below) {
		return c.found(c.t, nil, nil, "foreign key %q lists %d tables below its parent, which has %d", k.Name, len(k.Parts), len(below))
	}
	return nil
}

// references checks that the tables that a descriptor lists have foreign keys to it.
func (c *tableChecker) references(ctx context.Context) error {
	for _, id := range c.t.Referencing {
		child, err := c.resolver.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if child == nil || !slices.ContainsFunc(child.ForeignKeys, func(k catalog.ForeignKeyDescriptor) bool { return k.Parent == c.t.ID }) {
			if err := c.found(c.t, nil, nil, "relation %d is listed and has no foreign key to it", id); err != nil {
				return err
			}
		}
	}
	return nil
}

// parents queues the parents of a row, and looks for them when there are many.
func (c *tableChecker) parents(ctx context.Context, key []byte, row types.Row) error {
	for _, k := range c.keys {
		var null int
		var err error
		if k.buf, null, err = k.ParentKey(k.buf[:0], &k.ev, row); err != nil {
			return c.found(c.t, nil, key, "foreign key %q: %v", k.Name, err)
		}
		if null > 0 {
			if k.MatchFull && null < len(k.Columns) {
				if err := c.found(c.t, nil, key, "foreign key %q mixes NULL and other values", k.Name); err != nil {
					return err
				}
			}
			continue
		}
		k.keys, k.rows = append(k.keys, slices.Clone(k.buf)), append(k.rows, slices.Clone(key))
		if len(k.keys) >= groupSize {
			if err := c.lookUpParents(ctx, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookUpParents looks for the queued parents.
func (c *tableChecker) lookUpParents(ctx context.Context, k *keyChecker) error {
	stored, err := c.txn.BatchGet(ctx, k.keys)
	if err != nil {
		return err
	}
	for i, value := range stored {
		if value == nil {
			if err := c.found(c.t, nil, k.rows[i], "foreign key %q: the parent %x in %q does not exist", k.Name, k.keys[i], k.Parent.Name); err != nil {
				return err
			}
		}
	}
	k.keys, k.rows = k.keys[:0], k.rows[:0]
	return nil
}
