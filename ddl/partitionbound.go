package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/partition"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// inPartitionBound is the place of the values of bounds, as errors name it.
const inPartitionBound = "partition bound"

// partitionBound makes the bound of a partition of parent.
func (r *run) partitionBound(ctx context.Context, parent *catalog.TableDescriptor, n *ast.PartitionBound) (b catalog.PartitionBound, err error) {
	strategy := parent.Partitioning.Strategy
	if n.Default {
		if strategy == catalog.PartitionByHash {
			return b, pgerror.New(pgerror.InvalidTableDefinition, "a hash-partitioned table may not have a default partition")
		}
		return catalog.PartitionBound{Default: true, Text: "DEFAULT"}, nil
	}
	given := catalog.PartitionByRange
	switch {
	case n.Modulus != 0 || n.In == nil && n.From == nil:
		given = catalog.PartitionByHash
	case n.In != nil:
		given = catalog.PartitionByList
	}
	if given != strategy {
		return b, pgerror.New(pgerror.InvalidTableDefinition, "invalid bound specification for a %s partition", strings.ToLower(strategy.String())).At(n.Position())
	}
	switch strategy {
	case catalog.PartitionByHash:
		return hashPartitionBound(n)
	case catalog.PartitionByList:
		return r.listBound(ctx, parent, n)
	}
	return r.rangeBound(ctx, parent, n)
}

func hashPartitionBound(n *ast.PartitionBound) (b catalog.PartitionBound, err error) {
	problem := ""
	switch {
	case n.Modulus <= 0:
		problem = "modulus for hash partition must be an integer value greater than zero"
	case n.Remainder < 0:
		problem = "remainder for hash partition must be an integer value greater than or equal to zero"
	case n.Remainder >= n.Modulus:
		problem = "remainder for hash partition must be less than modulus"
	}
	if problem != "" {
		return b, pgerror.New(pgerror.InvalidTableDefinition, "%s", problem)
	}
	b.Modulus, b.Remainder = uint64(n.Modulus), uint64(n.Remainder)
	b.Text = "FOR VALUES WITH (modulus " + formatInt(int64(n.Modulus)) + ", remainder " + formatInt(int64(n.Remainder)) + ")"
	return b, nil
}

func (r *run) listBound(ctx context.Context, parent *catalog.TableDescriptor, n *ast.PartitionBound) (b catalog.PartitionBound, err error) {
	typ := partition.KeyTypes(parent)[0]
	var have []types.Datum
	var texts []string
	for _, e := range n.In {
		d, err := r.boundValue(ctx, parent, 0, typ, e)
		if err != nil {
			return b, err
		}
		if slices.ContainsFunc(have, func(o types.Datum) bool {
			return o.IsNull() && d.IsNull() || !o.IsNull() && !d.IsNull() && types.Equal(o, d, typ)
		}) {
			continue
		}
		enc, err := rowenc.EncodeDatum(d)
		if err != nil {
			return b, err
		}
		have, texts, b.In = append(have, d), append(texts, r.boundText(d, typ)), append(b.In, enc)
	}
	b.Text = "FOR VALUES IN (" + strings.Join(texts, ", ") + ")"
	return b, nil
}

func (r *run) rangeBound(ctx context.Context, parent *catalog.TableDescriptor, n *ast.PartitionBound) (b catalog.PartitionBound, err error) {
	keys := len(parent.Partitioning.Keys)
	switch {
	case len(n.From) != keys:
		return b, pgerror.New(pgerror.InvalidTableDefinition, "FROM must specify exactly one value per partitioning column")
	case len(n.To) != keys:
		return b, pgerror.New(pgerror.InvalidTableDefinition, "TO must specify exactly one value per partitioning column")
	}
	var from, to string
	if b.From, from, err = r.rangeLimits(ctx, parent, n.From); err != nil {
		return b, err
	}
	if b.To, to, err = r.rangeLimits(ctx, parent, n.To); err != nil {
		return b, err
	}
	b.Text = "FOR VALUES FROM " + from + " TO " + to
	return b, nil
}

// rangeLimits makes one end of a range, and its text.
func (r *run) rangeLimits(ctx context.Context, parent *catalog.TableDescriptor, list []ast.Expr) (out []catalog.RangeLimit, text string, err error) {
	var texts []string
	infinite := int8(0)
	words := map[int8]string{-1: "MINVALUE", 1: "MAXVALUE"}
	for i, e := range list {
		l := catalog.RangeLimit{Infinite: infiniteLimit(e)}
		if infinite != 0 && l.Infinite != infinite {
			return nil, "", pgerror.New(pgerror.DatatypeMismatch, "every bound following %s must also be %s", words[infinite], words[infinite]).At(e.Position())
		}
		if infinite = l.Infinite; infinite != 0 {
			out, texts = append(out, l), append(texts, words[infinite])
			continue
		}
		typ := partition.KeyTypes(parent)[i]
		d, err := r.boundValue(ctx, parent, i, typ, e)
		if err != nil {
			return nil, "", err
		}
		if d.IsNull() {
			return nil, "", pgerror.New(invalidObjectDefinition, "cannot specify NULL in range bound")
		}
		if l.Value, err = rowenc.EncodeDatum(d); err != nil {
			return nil, "", err
		}
		out, texts = append(out, l), append(texts, r.boundText(d, typ))
	}
	return out, "(" + strings.Join(texts, ", ") + ")", nil
}

// infiniteLimit recognises MINVALUE and MAXVALUE.
func infiniteLimit(e ast.Expr) int8 {
	if ref, ok := e.(*ast.ColumnRef); ok && len(ref.Parts) == 1 {
		switch ref.Parts[0] {
		case "minvalue":
			return -1
		case "maxvalue":
			return 1
		}
	}
	return 0
}

// boundValue evaluates a value of a bound for a column of the key.
func (r *run) boundValue(ctx context.Context, parent *catalog.TableDescriptor, i int, typ types.Type, e ast.Expr) (types.Datum, error) {
	if at, found := columnIn(e); found {
		return types.Null, pgerror.New(pgerror.FeatureNotSupported, "cannot use column reference in partition bound expression").At(at)
	}
	bound, err := r.bind(ctx, nil, e, typ, inPartitionBound)
	if pg, ok := err.(*pgerror.Error); ok && pg.Code == pgerror.DatatypeMismatch {
		name := parent.ColumnByID(parent.Partitioning.Keys[i].ColumnID).Name
		return types.Null, pgerror.New(pgerror.DatatypeMismatch, "specified value cannot be cast to type %s for column %q", typ.Base().String(), name).At(e.Position())
	}
	if pg, ok := err.(*pgerror.Error); ok && pg.Message == "cannot use subquery in "+inPartitionBound {
		pg.Code = pgerror.FeatureNotSupported
	}
	if err != nil {
		return types.Null, err
	}
	d, err := bound.Eval(&expr.Context{Ctx: ctx, Env: r.Env}, nil)
	if err != nil {
		return types.Null, err
	}
	return d.Clone(), nil
}

// boundText prints a value of a bound as PostgreSQL does.
func (r *run) boundText(d types.Datum, typ types.Type) string {
	if d.IsNull() {
		return "NULL"
	}
	text := string(types.AppendText(nil, d, typ, nil))
	switch typ.Underlying().OID {
	case types.OIDInt4:
		if d.Int() >= 0 {
			return text
		}
	case types.OIDBool:
		if d.Bool() {
			return "true"
		}
		return "false"
	case types.OIDNumeric:
		if text[0] >= '0' && text[0] <= '9' && strings.Contains(text, ".") {
			return text
		}
	}
	return builtin.QuoteLiteral(text)
}

// siblings are the partitions of a table, with their bounds.
type siblings struct {
	parts  []*catalog.TableDescriptor
	bounds *partition.Bounds
}

func (r *run) siblings(ctx context.Context, parent *catalog.TableDescriptor) (*siblings, error) {
	parts, err := catalog.PartitionsOf(ctx, r.r, parent)
	if err != nil {
		return nil, err
	}
	list := make([]catalog.PartitionBound, len(parts))
	for i, p := range parts {
		list[i] = p.PartitionOf.Bound
	}
	bounds, err := partition.New(parent, list)
	return &siblings{parts, bounds}, err
}

// rest returns the default partition, nil for none.
func (s *siblings) rest() *catalog.TableDescriptor {
	if at := s.bounds.Default(); at >= 0 {
		return s.parts[at]
	}
	return nil
}

// requireRoom fails if the bound of a new partition is empty or overlaps that of another.
func (s *siblings) requireRoom(parent *catalog.TableDescriptor, name string, b *catalog.PartitionBound, n *ast.PartitionBound) error {
	if b.Default {
		if rest := s.rest(); rest != nil {
			return pgerror.New(invalidObjectDefinition, "partition %q conflicts with existing default partition %q", name, rest.Name).At(n.Position())
		}
		return nil
	}
	if empty, err := partition.Empty(parent, b); err != nil || empty {
		from, to, _ := strings.Cut(strings.TrimPrefix(b.Text, "FOR VALUES FROM "), " TO ")
		return errorOr(err, pgerror.New(invalidObjectDefinition, "empty range bound specified for partition %q", name).
			WithDetail("Specified lower bound %s is greater than or equal to upper bound %s.", from, to).At(n.From[0].Position()))
	}
	if b.Modulus > 0 {
		if err := s.requireFactor(b); err != nil {
			return err
		}
	}
	at, column, err := s.bounds.Overlaps(parent, b)
	if err != nil || at < 0 {
		return err
	}
	pos := n.Position()
	switch {
	case n.In != nil:
		pos = n.In[0].Position()
		if column < len(n.In) {
			pos = n.In[column].Position()
		}
	case n.From != nil && column >= 0:
		pos = n.From[column].Position()
	case n.To != nil:
		pos = n.To[-1-column].Position()
	}
	return pgerror.New(invalidObjectDefinition, "partition %q would overlap partition %q", name, s.parts[at].Name).At(pos)
}

// requireFactor fails unless the moduli of all hash partitions divide each other.
func (s *siblings) requireFactor(b *catalog.PartitionBound) error {
	moduli, parts := s.bounds.Modulus()
	fail := func(relation string, i int) error {
		return pgerror.New(invalidObjectDefinition, "every hash partition modulus must be a factor of the next larger modulus").
			WithDetail("The new modulus %d is not %s %d, the modulus of existing partition %q.", b.Modulus, relation, moduli[i], s.parts[parts[i]].Name)
	}
	below := -1
	for i, m := range moduli {
		if m > b.Modulus {
			if m%b.Modulus != 0 {
				return fail("a factor of", i)
			}
			break
		}
		below = i
	}
	if below >= 0 && b.Modulus%moduli[below] != 0 {
		return fail("divisible by", below)
	}
	return nil
}
