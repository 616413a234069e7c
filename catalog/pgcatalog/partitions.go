package pgcatalog

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// inheritRows lists the partitions, and the parts of the indexes of partitioned tables.
func inheritRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !t.IsPartition() {
			return nil
		}
		parent := catalog.TableDescriptor{ID: t.PartitionOf.Parent}
		err := s.emit(col{"inhrelid", oid(t.OID())}, col{"inhparent", oid(parent.OID())}, col{"inhseqno", num(1)}, col{"inhdetachpending", boolean(false)})
		if err != nil {
			return err
		}
		for _, ix := range visibleIndexes(t) {
			if ix.Parent == 0 {
				continue
			}
			if err := s.emit(col{"inhrelid", oid(ix.OID)}, col{"inhparent", oid(ix.Parent)}, col{"inhseqno", num(1)}, col{"inhdetachpending", boolean(false)}); err != nil {
				return err
			}
		}
		return nil
	})
}

// partitionedRows lists the partitioned tables.
func partitionedRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !t.IsPartitioned() {
			return nil
		}
		parts, err := catalog.PartitionsOf(s.ctx, s.Resolver, t)
		if err != nil {
			return err
		}
		rest := uint32(0)
		for _, p := range parts {
			if p.PartitionOf.Bound.Default {
				rest = p.OID()
			}
		}
		var keys, classes, collations []int64
		var exprs []string
		for i := range t.Partitioning.Keys {
			k := &t.Partitioning.Keys[i]
			c := t.ColumnByID(k.ColumnID)
			number := int64(c.ID)
			if c.Expr != nil {
				number = 0
				exprs = append(exprs, s.printer().indexText(t, c.Expr, types.Type{}, false))
			}
			keys = append(keys, number)
			classes = append(classes, classOf(k, c.Type))
			collations = append(collations, int64(collationOf(k.KeyType(c.Type))))
		}
		text := types.Null
		if exprs != nil {
			text = types.Text(strings.Join(exprs, ", "))
		}
		return s.emit(col{"partrelid", oid(t.OID())}, col{"partstrat", letter(byte(t.Partitioning.Strategy))}, col{"partnatts", num(len(keys))},
			col{"partdefid", oid(rest)}, col{"partattrs", vector(types.TInt2vector, keys)}, col{"partclass", vector(types.TOidvector, classes)},
			col{"partcollation", vector(types.TOidvector, collations)}, col{"partexprs", text})
	})
}

// PartitionKeyDefinition implements builtin.Catalog.
func (o *Objects) PartitionKeyDefinition(id types.OID) (string, bool) {
	r, t := o.relation(id)
	if t == nil || !t.IsPartitioned() {
		return "", false
	}
	keys := make([]string, len(t.Partitioning.Keys))
	for i := range t.Partitioning.Keys {
		k := &t.Partitioning.Keys[i]
		c := t.ColumnByID(k.ColumnID)
		keys[i] = o.printer(r).keyDefinition(t, k.ColumnID, false)
		if coll := k.Coll; coll != c.Type.Coll && coll != nil {
			keys[i] += " COLLATE " + keyword.QuoteIdent(coll.Name)
		}
		if k.OpClass != "" {
			keys[i] += " " + k.OpClass
		}
	}
	return t.Partitioning.Strategy.String() + " (" + strings.Join(keys, ", ") + ")", true
}

// partitionKeyText is a column of a partition key as conditions name it.
func partitionKeyText(c *catalog.ColumnDescriptor) string {
	switch {
	case c.Expr == nil:
		return keyword.QuoteIdent(c.Name)
	case c.Expr.Call:
		return c.Expr.Pretty
	}
	return "(" + c.Expr.Pretty + ")"
}

// PartitionTree implements builtin.Catalog.
func (o *Objects) PartitionTree(id types.OID) []builtin.PartitionNode {
	r, t := o.relation(id)
	if t == nil || !t.IsPartitioned() && !t.IsPartition() {
		return nil
	}
	var out []builtin.PartitionNode
	levels := map[uint64]int{}
	all, err := catalog.PartitionTree(background(), r, t)
	if err != nil {
		return nil
	}
	for _, part := range all {
		n := builtin.PartitionNode{Relation: types.OID(part.OID()), Leaf: !part.IsPartitioned()}
		if part.ID != t.ID {
			levels[part.ID] = levels[part.PartitionOf.Parent] + 1
		}
		if part.IsPartition() {
			n.Parent = types.OID(uint32(part.PartitionOf.Parent))
		}
		n.Level = levels[part.ID]
		out = append(out, n)
	}
	return out
}

// PartitionAncestors implements builtin.Catalog.
func (o *Objects) PartitionAncestors(id types.OID) []types.OID {
	r, t := o.relation(id)
	if t == nil || !t.IsPartitioned() && !t.IsPartition() {
		return nil
	}
	out := []types.OID{id}
	above, err := catalog.PartitionAncestors(background(), r, t)
	if err != nil {
		return nil
	}
	for _, p := range above {
		out = append(out, types.OID(p.OID()))
	}
	return out
}

// PartitionConstraint implements builtin.Catalog: what rows of a partition satisfy, those of the tables above it first.
func (o *Objects) PartitionConstraint(id types.OID) (string, bool) {
	r, t := o.relation(id)
	if t == nil || !t.IsPartition() {
		return "", false
	}
	var conds []string
	for t.IsPartition() {
		parent, err := r.RelationByID(background(), t.PartitionOf.Parent)
		if err != nil || parent == nil {
			return "", false
		}
		own, ok := boundCondition(parent, t)
		if !ok {
			return "", false
		}
		conds = append(own, conds...)
		t = parent
	}
	if len(conds) == 1 {
		return conds[0], true
	}
	return "(" + strings.Join(conds, " AND ") + ")", true
}

// boundCondition is what rows of a partition satisfy because of its own bound, as PostgreSQL prints it; false: it has no such form here.
func boundCondition(parent, t *catalog.TableDescriptor) ([]string, bool) {
	b := &t.PartitionOf.Bound
	var names []string
	var keys []types.Type
	for i := range parent.Partitioning.Keys {
		k := &parent.Partitioning.Keys[i]
		c := parent.ColumnByID(k.ColumnID)
		names, keys = append(names, partitionKeyText(c)), append(keys, k.KeyType(c.Type))
	}
	switch {
	case parent.Partitioning.Strategy == catalog.PartitionByHash:
		args := append([]string{"'" + strconv.FormatUint(uint64(parent.OID()), 10) + "'::oid", strconv.FormatUint(b.Modulus, 10),
			strconv.FormatUint(b.Remainder, 10)}, names...)
		return []string{"satisfies_hash_partition(" + strings.Join(args, ", ") + ")"}, true
	case b.Default || len(keys) > 1:
		return nil, false
	case parent.Partitioning.Strategy == catalog.PartitionByList:
		return listCondition(names[0], keys[0], b)
	}
	conds := []string{"(" + names[0] + " IS NOT NULL)"}
	for _, end := range []struct {
		op    string
		limit catalog.RangeLimit
	}{{" >= ", b.From[0]}, {" < ", b.To[0]}} {
		if end.limit.Infinite != 0 {
			continue
		}
		value, ok := boundConstant(end.limit.Value, keys[0])
		if !ok {
			return nil, false
		}
		conds = append(conds, "("+names[0]+end.op+value+")")
	}
	return conds, true
}

func listCondition(name string, t types.Type, b *catalog.PartitionBound) ([]string, bool) {
	var values []string
	null := false
	for _, enc := range b.In {
		value, ok := boundConstant(enc, t)
		switch {
		case !ok:
			return nil, false
		case value == "":
			null = true
		default:
			values = append(values, value)
		}
	}
	equal := name + " = ANY (ARRAY[" + strings.Join(values, ", ") + "])"
	if len(values) == 1 {
		equal = name + " = " + values[0]
	}
	switch {
	case null && len(values) == 0:
		return []string{"(" + name + " IS NULL)"}, true
	case null:
		return []string{"((" + name + " IS NULL) OR (" + equal + "))"}, true
	}
	return []string{"(" + name + " IS NOT NULL)", "(" + equal + ")"}, true
}

// boundConstant prints a value of a bound as a constant; "" for NULL.
func boundConstant(enc []byte, t types.Type) (string, bool) {
	d, err := rowenc.DecodeDatum(enc)
	if err != nil {
		return "", false
	}
	if d.IsNull() {
		return "", true
	}
	text := string(types.AppendText(nil, d, t, nil))
	switch t.Underlying().OID {
	case types.OIDInt4:
		if d.Int() >= 0 {
			return text, true
		}
	case types.OIDBool:
		if d.Bool() {
			return "true", true
		}
		return "false", true
	}
	t.Coll = nil
	return builtin.QuoteLiteral(text) + "::" + t.String(), true
}
