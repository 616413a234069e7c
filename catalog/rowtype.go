package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/percodb/percodb/sql/types"
)

// The row type of a relation is computed from its descriptor. Its OID, and that of its array type, are derived from the relation's
// number, so that they need no storage. Its fields are the columns, under the columns' IDs: a value that was stored before a column was
// added or dropped is read as types.Conform says.
const (
	rowTypeOID   = 1 << 31
	rowArrayOID  = rowTypeOID | rowNumberEnd
	rowNumberEnd = 1 << 30 // A relation with a higher number has no row type.
	maxTypeName  = 63
)

// RowType returns the OIDs of the relation's row type and of its array type; 0 if it has none, as a sequence.
func (t *TableDescriptor) RowType() (row, array types.OID) {
	if t.Kind == KindSequence || t.ID >= rowNumberEnd {
		return 0, 0
	}
	return types.OID(rowTypeOID | t.ID), types.OID(rowArrayOID | t.ID)
}

// relationOfType returns the number of the relation whose row type, or array type of its row type, has the OID.
func relationOfType(oid types.OID) (id uint64, ok bool) {
	return uint64(oid) &^ rowArrayOID, oid&rowTypeOID != 0
}

// rowTypes are the row types of a schema's relations, made when they are first used. Safe for concurrent use.
type rowTypes struct {
	relations rowSource
	below     *rowTypes // those of a schema under this one; nil: none
	temporary string    // the schema that is found as TemporarySchema
	mu        struct {
		sync.Mutex
		made map[uint64]*TypeDescriptor // by relation
		// arrays are the names of array types, and their relations, names the inverse; nil until one is sought.
		arrays map[qualifiedName]uint64
		names  map[uint64]string
	}
}

// rowSource is where rowTypes finds the relations, whose columns have the definitions of their types.
type rowSource interface {
	linked(id uint64) *TableDescriptor
	linkedNamed(schema, name string) *TableDescriptor
	linkedAll() []*TableDescriptor
}

func newRowTypes(relations rowSource, below *rowTypes) *rowTypes {
	r := &rowTypes{relations: relations, below: below}
	r.mu.made = map[uint64]*TypeDescriptor{}
	return r
}

// keep takes over the row types that another version of the schema has made. Those of relations that differ are made anew when they are
// used, or removed by prune.
func (r *rowTypes) keep(former *rowTypes) {
	former.mu.Lock()
	defer former.mu.Unlock()
	r.mu.made = maps.Clone(former.mu.made)
}

// of returns the row type of a relation of the schema, nil if it has none.
func (r *rowTypes) of(t *TableDescriptor) *TypeDescriptor {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.mu.made[t.ID]
	if d == nil || d.Relation != t {
		if d = rowTypeOf(t); d == nil {
			return nil
		}
		r.mu.made[t.ID] = d
	}
	return d
}

// prune removes the row types of relations of another version.
func (r *rowTypes) prune() {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.mu.made, func(id uint64, d *TypeDescriptor) bool { return r.relations.linked(id) != d.Relation })
}

func (r *rowTypes) byOID(oid types.OID) *TypeDescriptor {
	id, ok := relationOfType(oid)
	if !ok {
		return nil
	}
	for ; r != nil; r = r.below {
		if t := r.relations.linked(id); t != nil {
			return r.of(t)
		}
	}
	return nil
}

func (r *rowTypes) named(defined *definedTypes, schema, name string) types.Type {
	for ; r != nil; r = r.below {
		in := schema
		if in == TemporarySchema {
			in = r.temporary
		}
		if t := r.relations.linkedNamed(in, name); t != nil {
			if d := r.of(t); d != nil {
				return d.Type()
			}
		}
		if !strings.HasPrefix(name, "_") {
			continue
		}
		arrays, _ := r.arrayNames(defined)
		if id, ok := arrays[qualifiedName{in, name}]; ok {
			return r.of(r.relations.linked(id)).def.ArrayType()
		}
	}
	return types.Type{}
}

// arrayNames returns the names of the array types. They are computed for all at once, since they must differ: from each other, and from
// the names of other types.
func (r *rowTypes) arrayNames(defined *definedTypes) (arrays map[qualifiedName]uint64, names map[uint64]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.arrays != nil {
		return r.mu.arrays, r.mu.names
	}
	all := slices.Clone(r.relations.linkedAll())
	slices.SortFunc(all, func(a, b *TableDescriptor) int { return cmp.Compare(a.ID, b.ID) })
	r.mu.arrays, r.mu.names = make(map[qualifiedName]uint64, len(all)), make(map[uint64]string, len(all))
	for _, t := range all {
		if row, _ := t.RowType(); row == 0 {
			continue
		}
		for under := "_"; len(under) < maxTypeName; under += "_" {
			name := qualifiedName{t.Schema, under + clipName(t.Name, maxTypeName-len(under))}
			_, taken := r.mu.arrays[name]
			if other := r.relations.linkedNamed(name.schema, name.name); other != nil {
				row, _ := other.RowType()
				taken = taken || row != 0
			}
			if !taken && !defined.byName[name].Valid() {
				r.mu.arrays[name], r.mu.names[t.ID] = t.ID, name.name
				break
			}
		}
	}
	return r.mu.arrays, r.mu.names
}

// RowType returns the row type of a relation, which may be a descriptor that the schema does not have (yet); nil if it has none.
func (t *Types) RowType(rel *TableDescriptor) *TypeDescriptor {
	for r := t.rows; r != nil; r = r.below {
		if r.relations.linked(rel.ID) == rel {
			return r.of(rel)
		}
	}
	return rowTypeOf(rel)
}

// RowArrayName returns the name of the array type of a relation's row type.
func (t *Types) RowArrayName(rel *TableDescriptor) string {
	for r := t.rows; r != nil; r = r.below {
		if r.relations.linked(rel.ID) == nil {
			continue
		}
		_, names := r.arrayNames(t.definedTypes)
		return names[rel.ID]
	}
	return ""
}

// clipName cuts a name to at most n bytes, between characters.
func clipName(name string, n int) string {
	if len(name) <= n {
		return name
	}
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return name[:n]
}

// rowTypeOf makes the row type of a relation whose columns have the definitions of their types; nil: it has none.
func rowTypeOf(t *TableDescriptor) *TypeDescriptor {
	row, array := t.RowType()
	if row == 0 {
		return nil
	}
	d := &TypeDescriptor{
		ID: uint64(row), ArrayID: uint64(array), Version: t.Version, Kind: types.Composite, Schema: t.Schema, Name: t.Name,
		ArrayName: "_" + clipName(t.Name, maxTypeName-1), Owned: Owned{Owner: t.Owner}, NextField: t.NextColumnID, RelationID: t.ID, Relation: t,
	}
	for i := range t.Columns {
		if c := &t.Columns[i]; !c.Hidden {
			d.Fields = append(d.Fields, types.Field{ID: c.ID, Name: c.Name, Type: c.Type})
		}
	}
	d.def = types.NewDefined(&types.Defined{
		OID: row, Array: array, Kind: types.Composite, Version: d.Version, Schema: d.Schema, Name: d.Name, ArrayName: d.ArrayName,
		Fields: d.Fields, Relation: t.ID,
	})
	return d
}
