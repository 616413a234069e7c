package pgcatalog

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

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
		own, ok := boundCondition(r, parent, t)
		if !ok {
			return "", false
		}
		conds = append(own, conds...)
		t = parent
	}
	switch len(conds) {
	case 0: // A default partition without siblings.
		return "", false
	case 1:
		return conds[0], true
	}
	return "(" + strings.Join(conds, " AND ") + ")", true
}

// boundCondition is what rows of a partition satisfy because of its own bound, as PostgreSQL prints it; false: it has no such form here.
func boundCondition(r catalog.Resolver, parent, t *catalog.TableDescriptor) ([]string, bool) {
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
	case b.Default:
		return defaultCondition(r, parent, names, keys)
	case parent.Partitioning.Strategy == catalog.PartitionByList:
		return listCondition(names[0], keys[0], b.In)
	}
	conds, ok := rangeConditions(names, keys, b)
	return append(notNullTests(names), conds...), ok
}

// notNullTests are the conditions that the columns of a key are not NULL.
func notNullTests(names []string) []string {
	tests := make([]string, len(names))
	for i, name := range names {
		tests[i] = "(" + name + " IS NOT NULL)"
	}
	return tests
}

// defaultCondition is that of the default partition: not one of the others'.
func defaultCondition(r catalog.Resolver, parent *catalog.TableDescriptor, names []string, keys []types.Type) ([]string, bool) {
	parts, err := catalog.PartitionsOf(background(), r, parent)
	if err != nil {
		return nil, false
	}
	parts = slices.DeleteFunc(parts, func(t *catalog.TableDescriptor) bool { return t.PartitionOf.Bound.Default })
	if len(parts) == 0 {
		return nil, true
	}
	if parent.Partitioning.Strategy == catalog.PartitionByList {
		var values [][]byte
		for _, t := range parts {
			values = append(values, t.PartitionOf.Bound.In...)
		}
		conds, ok := listCondition(names[0], keys[0], sortedValues(values, keys[0]))
		return []string{"(NOT " + joined(" AND ", conds) + ")"}, ok
	}
	slices.SortStableFunc(parts, func(a, b *catalog.TableDescriptor) int {
		return compareLimits(a.PartitionOf.Bound.From, b.PartitionOf.Bound.From, keys)
	})
	var arms []string
	for _, t := range parts {
		conds, ok := rangeConditions(names, keys, &t.PartitionOf.Bound)
		if !ok {
			return nil, false
		}
		if len(conds) == 0 {
			conds = []string{"true"}
		}
		arms = append(arms, joined(" AND ", conds))
	}
	return []string{"(NOT " + joined(" AND ", append(notNullTests(names), joined(" OR ", arms))) + ")"}, true
}

// joined joins conditions, each of which is in parentheses.
func joined(op string, conds []string) string {
	if len(conds) == 1 {
		return conds[0]
	}
	return "(" + strings.Join(conds, op) + ")"
}

// sortedValues orders values of lists, NULL last.
func sortedValues(values [][]byte, t types.Type) [][]byte {
	slices.SortStableFunc(values, func(a, b []byte) int {
		x, _ := rowenc.DecodeDatum(a) // What cannot be decoded is found when it is printed.
		y, _ := rowenc.DecodeDatum(b)
		switch {
		case x.IsNull() || y.IsNull():
			return compareBool(x.IsNull(), y.IsNull())
		}
		return types.Compare(x, y, t)
	})
	return values
}

func compareBool(a, b bool) int { return int(boolNumber(a)) - int(boolNumber(b)) }

// compareLimits orders ends of ranges.
func compareLimits(a, b []catalog.RangeLimit, keys []types.Type) int {
	for i := range a {
		if a[i].Infinite != b[i].Infinite {
			return int(a[i].Infinite) - int(b[i].Infinite)
		}
		if a[i].Infinite != 0 {
			return 0
		}
		x, _ := rowenc.DecodeDatum(a[i].Value)
		y, _ := rowenc.DecodeDatum(b[i].Value)
		if c := types.Compare(x, y, keys[i]); c != 0 {
			return c
		}
	}
	return 0
}

// rangeConditions are those of a range over columns that are not NULL: the columns in which both ends are equal, the lower end, the upper end.
func rangeConditions(names []string, keys []types.Type, b *catalog.PartitionBound) (conds []string, ok bool) {
	ends := [2][]string{make([]string, len(names)), make([]string, len(names))}
	for i := range names {
		for j, limit := range []catalog.RangeLimit{b.From[i], b.To[i]} {
			if limit.Infinite != 0 {
				continue
			}
			if ends[j][i], ok = boundConstant(limit.Value, keys[i]); !ok {
				return nil, false
			}
		}
	}
	first := 0
	for first < len(names)-1 && ends[0][first] != "" && ends[0][first] == ends[1][first] {
		conds = append(conds, "("+names[first]+" = "+ends[0][first]+")")
		first++
	}
	if lower := rangeEnd(names[first:], ends[0][first:], b.From[first:], " > ", " >= ", -1); len(lower) > 0 {
		conds = append(conds, joined(" OR ", lower))
	}
	if upper := rangeEnd(names[first:], ends[1][first:], b.To[first:], " < ", " <= ", 1); len(upper) > 0 {
		conds = append(conds, joined(" OR ", upper))
	}
	return conds, true
}

// rangeEnd is one end of a range: a condition for each column, with the columns before it equal. inclusive is used where the columns behind do not
// matter: for the last one of a lower end, and before a column that is infinite on the given side.
func rangeEnd(names, values []string, limits []catalog.RangeLimit, exclusive, inclusive string, side int8) (arms []string) {
	for i := range names {
		if values[i] == "" {
			return arms
		}
		var arm []string
		for j := range i {
			arm = append(arm, "("+names[j]+" = "+values[j]+")")
		}
		op := exclusive
		if last := i == len(names)-1; last && side < 0 || !last && limits[i+1].Infinite == side {
			op = inclusive
		}
		arms = append(arms, joined(" AND ", append(arm, "("+names[i]+op+values[i]+")")))
	}
	return arms
}

// listCondition is that of a column that has one of some values.
func listCondition(name string, t types.Type, in [][]byte) ([]string, bool) {
	var values []string
	null := false
	for _, enc := range in {
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
	case types.OIDNumeric:
		if strings.Contains(text, ".") && text[0] != '-' { // It reads as a numeric.
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
