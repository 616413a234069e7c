package planner

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/partition"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

// PartitionCheck is the condition under which a row may be stored in a partition: for each table above it, the row belongs to the partition
// on the way. It is over a full row of the partition.
type PartitionCheck struct {
	Table  *catalog.TableDescriptor
	levels []partitionLevel
}

type partitionLevel struct {
	bounds *partition.Bounds
	keys   []expr.Scalar
	own    int
}

// Holds reports whether a row belongs to the partition. A nil check admits all rows.
func (c *PartitionCheck) Holds(ev *expr.Context, row types.Row) (bool, error) {
	if c == nil {
		return true, nil
	}
	var space [4]types.Datum
	for i := range c.levels {
		l := &c.levels[i]
		key, err := evalKey(space[:0], l.keys, ev, row)
		if err != nil || l.bounds.Find(key) != l.own {
			return false, err
		}
	}
	return true, nil
}

func evalKey(dst []types.Datum, keys []expr.Scalar, ev *expr.Context, row types.Row) ([]types.Datum, error) {
	for _, k := range keys {
		d, err := k.Eval(ev, row)
		if err != nil {
			return nil, err
		}
		dst = append(dst, d)
	}
	return dst, nil
}

// BindPartitionCheck binds the condition under which rows of t belong where it is; nil: it is no partition.
func BindPartitionCheck(ctx context.Context, t *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) (*PartitionCheck, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	c := p.partitionCheck(p.b.newScan(t, t.Name, nil))
	return c, p.err
}

// BindPartitionCheckOf binds the condition under which rows of t, the table with the given id or one below it, may be in the partition that this
// table becomes of parent: together with the conditions of the tables above parent.
func BindPartitionCheckOf(ctx context.Context, t, parent *catalog.TableDescriptor, id uint64, bound *catalog.PartitionBound, r catalog.Resolver, env *builtin.Env) (*PartitionCheck, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	scan := p.b.newScan(t, t.Name, nil)
	c := &PartitionCheck{Table: t}
	c.add(p, scan, parent, id, bound)
	p.addAncestors(c, scan, parent)
	return c, p.err
}

// BindPartitionKey binds the columns of the partition key of parent over a full row of t.
func BindPartitionKey(ctx context.Context, t, parent *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) ([]expr.Scalar, error) {
	p := &physical{b: &binder{ctx: ctx, r: r, env: env, noSlots: true}}
	return p.partitionKey(parent, p.b.newScan(t, t.Name, nil)), p.err
}

// partitionCheck is the condition for rows of a scan's table, nil if it is no partition.
func (p *physical) partitionCheck(scan *scanRel) *PartitionCheck {
	if !scan.table.IsPartition() || p.err != nil {
		return nil
	}
	c := &PartitionCheck{Table: scan.table}
	p.addAncestors(c, scan, scan.table)
	return c
}

// addAncestors adds the conditions of t and of the tables above it.
func (p *physical) addAncestors(c *PartitionCheck, scan *scanRel, t *catalog.TableDescriptor) {
	for t.IsPartition() && p.err == nil {
		parent, err := p.b.r.RelationByID(p.b.ctx, t.PartitionOf.Parent)
		if err != nil {
			p.fail(err)
			return
		}
		p.dependOn(parent)
		c.add(p, scan, parent, t.ID, &t.PartitionOf.Bound)
		t = parent
	}
}

// add adds the condition that a row belongs to the partition of parent with the given id and bound. For the default partition all others count.
func (c *PartitionCheck) add(p *physical, scan *scanRel, parent *catalog.TableDescriptor, id uint64, bound *catalog.PartitionBound) {
	list := []catalog.PartitionBound{*bound}
	if bound.Default {
		parts, err := catalog.PartitionsOf(p.b.ctx, p.b.r, parent)
		if err != nil {
			p.fail(err)
			return
		}
		for _, part := range parts {
			if part.ID != id {
				list = append(list, part.PartitionOf.Bound)
			}
		}
	}
	bounds, err := partition.New(parent, list)
	if err != nil {
		p.fail(err)
		return
	}
	c.levels = append(c.levels, partitionLevel{bounds, p.partitionKey(parent, scan), 0})
}

// partitionKey compiles the partition key of a table over a full row of a scan, of the table itself or of one above or below it.
func (p *physical) partitionKey(t *catalog.TableDescriptor, scan *scanRel) []expr.Scalar {
	return p.partitionKeyOver(t, scan, scan.cols)
}

// partitionKeyOver is partitionKey over some columns of the scan.
func (p *physical) partitionKeyOver(t *catalog.TableDescriptor, scan *scanRel, cols []int) []expr.Scalar {
	keys := make([]expr.Scalar, len(t.Partitioning.Keys))
	for i := range t.Partitioning.Keys {
		c := t.ColumnByID(t.Partitioning.Keys[i].ColumnID)
		if c.Expr == nil {
			keys[i] = p.compile(p.hashed(t, i, p.b.column(scan.cols[scan.table.InheritedColumn(c)], 0)), cols)
			continue
		}
		x, err := p.b.catalogExpr(c.Expr.SQL, scan, func(sc *scope, e ast.Expr) (expr.Scalar, error) {
			sc.in("partition key expressions", false, false)
			x, err := sc.expr(e)
			if err != nil {
				return nil, err
			}
			return p.b.textIfUnknown(x), nil
		})
		if err != nil {
			p.fail(err)
			return keys
		}
		keys[i] = p.compile(p.hashed(t, i, x), cols)
	}
	return keys
}

// hashed returns the hash of a column of a partition key, x, if an operator class of a user hashes it, else x.
func (p *physical) hashed(t *catalog.TableDescriptor, key int, x expr.Scalar) expr.Scalar {
	if !partition.Hashed(t, key) {
		return x
	}
	seed := &expr.Const{Value: types.Int(partition.Seed), Typ: types.TInt8}
	h, err := p.b.callSupport(p.b.r.Operations().HashFunction(types.OID(t.Partitioning.Keys[key].OpClassID)), []expr.Scalar{x, seed})
	if err != nil {
		p.fail(err)
		return x
	}
	whenNull := expr.When{Cond: &expr.IsNull{X: expr.Clone(x)}, Then: expr.NewNull(types.TInt8)}
	return &expr.Case{Whens: []expr.When{whenNull}, Else: h, Typ: types.TInt8}
}

// Routes finds the partition of a row of a partitioned table.
type Routes struct {
	Table  *catalog.TableDescriptor
	bounds *partition.Bounds
	keys   []expr.Scalar // over a row of the table at the top
	parts  []route
}

// route leads to a leaf, or to a partition that is partitioned itself.
type route struct {
	below *Routes
	leaf  int
}

// Find returns the number of the leaf to which a row of the table at the top belongs. If there is none, it is -1, and key is the row's
// in the table that has no partition for it.
func (r *Routes) Find(ev *expr.Context, row types.Row) (leaf int, at *Routes, key []types.Datum, err error) {
	for {
		key, err := evalKey(key[:0], r.keys, ev, row)
		if err != nil {
			return -1, nil, nil, err
		}
		i := r.bounds.Find(key)
		if i < 0 {
			return -1, r, key, nil
		}
		if r.parts[i].below == nil {
			return r.parts[i].leaf, r, nil, nil
		}
		r = r.parts[i].below
	}
}

// leaves lists the tables with the rows of a partitioned table, and has them known to the plan.
func (p *physical) leaves(t *catalog.TableDescriptor) []*catalog.TableDescriptor {
	all, err := catalog.PartitionTree(p.b.ctx, p.b.r, t)
	if err != nil {
		p.fail(err)
	}
	for _, part := range all {
		p.b.use(part)
	}
	return slices.DeleteFunc(all, (*catalog.TableDescriptor).IsPartitioned)
}

// each calls f with the routes of every partitioned table.
func (r *Routes) each(f func(*Routes)) {
	f(r)
	for i := range r.parts {
		if below := r.parts[i].below; below != nil {
			below.each(f)
		}
	}
}

// routes makes the routes below t, over rows with the given columns of root.
func (p *physical) routes(t *catalog.TableDescriptor, root *scanRel, cols []int, leaf map[uint64]int) *Routes {
	parts, err := catalog.PartitionsOf(p.b.ctx, p.b.r, t)
	if err != nil {
		p.fail(err)
		return nil
	}
	r := &Routes{Table: t, keys: p.partitionKeyOver(t, root, cols)}
	list := make([]catalog.PartitionBound, len(parts))
	for i, part := range parts {
		list[i] = part.PartitionOf.Bound
		if part.IsPartitioned() {
			r.parts = append(r.parts, route{below: p.routes(part, root, cols, leaf)})
		} else {
			r.parts = append(r.parts, route{leaf: leaf[part.ID]})
		}
	}
	if r.bounds, err = partition.New(t, list); err != nil {
		p.fail(err)
	}
	return r
}

// partOf makes the scan of a table below the one of s: it has the column IDs of s, by the names of the columns, and new ones for others.
func (p *physical) partOf(s *scanRel, t *catalog.TableDescriptor) *scanRel {
	if t.ID == s.table.ID {
		return s
	}
	part := &scanRel{table: t, alias: s.alias, cols: make([]int, len(t.Columns)), policies: s.policies, secured: s.secured, part: true}
	if s.alias == s.table.Name {
		part.alias = t.Name
	}
	for i := range t.Columns {
		if ord := s.table.InheritedColumn(&t.Columns[i]); ord >= 0 {
			part.cols[i] = s.cols[ord]
			continue
		}
		part.cols[i] = len(p.b.cols)
		p.b.cols = append(p.b.cols, columnInfo{Column: Column{Name: t.Columns[i].Name, Type: t.Columns[i].Type, Table: part.alias}, notNull: true, scan: part, ordinal: i})
	}
	return part
}

// mapping returns, for each column of to, the ordinal of the same column of from, -1 if it has none.
func mapping(from, to *catalog.TableDescriptor) []int {
	out := make([]int, len(to.Columns))
	for i := range to.Columns {
		out[i] = from.InheritedColumn(&to.Columns[i])
	}
	return out
}
