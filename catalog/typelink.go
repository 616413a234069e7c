package catalog

import (
	"bytes"
	"maps"
	"slices"

	"github.com/percodb/percodb/sql/types"
)

// linker completes the types of columns, attributes and domains with definitions. Types may be within each other, those that users define
// and row types alike. None may be within itself: of descriptors that say so, which only damage can have made, it leaves the inner one
// without definition.
type linker struct {
	types *Types
	// relations are those of the schema; the ones that are not complete are replaced by copies.
	relations map[uint64]*TableDescriptor
	replace   func(*TableDescriptor)
	begun     map[uint64]bool // of relations
	reached   map[uint64]bool // the relations whose row types were within others
	defining  map[*TypeDescriptor]bool
}

// link completes all relations and types of the schema. What has not changed since last is shared with it.
func (s *schemaSnapshot) link(defined *definedTypes, last *schemaSnapshot) (err error) {
	changed := func(id uint64) bool { return !bytes.Equal(s.stored[id], last.stored[id]) }
	if last != nil && defined == last.types.definedTypes && slices.ContainsFunc(defined.over, changed) {
		if defined, err = defined.again(); err != nil {
			return err
		}
	}
	s.types = &Types{definedTypes: defined, rows: newRowTypes(s, nil)}
	if last != nil {
		s.types.rows.keep(last.types.rows)
	}
	l := newLinker(s.types, s.byID, s.add)
	for _, d := range defined.list {
		l.define(d)
	}
	for id := range l.reached {
		defined.over = append(defined.over, id)
	}
	for id := range s.stored { // Others have no types that users define.
		l.complete(id)
	}
	s.types.rows.prune()
	return nil
}

func newLinker(all *Types, relations map[uint64]*TableDescriptor, replace func(*TableDescriptor)) *linker {
	return &linker{types: all, relations: relations, replace: replace,
		begun: map[uint64]bool{}, reached: map[uint64]bool{}, defining: map[*TypeDescriptor]bool{}}
}

// link completes the temporary relations.
func (w *withTemporary) link() {
	base := w.Resolver.Types()
	w.types = &Types{definedTypes: base.definedTypes, rows: newRowTypes(w, base.rows)}
	w.types.rows.temporary = w.schema
	l := newLinker(w.types, w.byID, func(t *TableDescriptor) { w.byID[t.ID] = t })
	for _, id := range slices.Collect(maps.Keys(w.byID)) {
		l.complete(id)
	}
}

// complete gives the types of a relation's columns, and of the expressions of its indexes, their definitions.
func (l *linker) complete(id uint64) {
	t := l.relations[id]
	if t == nil || l.begun[id] || !slices.ContainsFunc(columnLists(t), func(list []ColumnDescriptor) bool {
		return slices.ContainsFunc(list, func(c ColumnDescriptor) bool { return c.Type.OID >= types.FirstUserOID })
	}) {
		return
	}
	l.begun[id] = true
	changed := t
	for i, list := range columnLists(t) {
		for j := range list {
			typ := list[j].Type
			want := l.typ(typ)
			if want == typ {
				continue
			}
			if changed == t {
				changed = t.Clone()
			}
			columnLists(changed)[i][j].Type = want
		}
	}
	if changed != t {
		l.replace(changed)
	}
}

// columnLists are the columns of a relation, the expressions of its indexes, and those of the indexes that are being built.
func columnLists(t *TableDescriptor) [][]ColumnDescriptor {
	lists := [][]ColumnDescriptor{t.Columns, t.Computed}
	for i := range t.Builds {
		lists = append(lists, t.Builds[i].Computed)
	}
	return lists
}

// typ returns a type with its definition, if it is not one that is being defined.
func (l *linker) typ(t types.Type) types.Type {
	if t.OID < types.FirstUserOID {
		return t
	}
	if id, ok := relationOfType(t.OID); ok {
		l.reached[id] = true
		l.complete(id)
	} else if d := l.types.byOID[t.OID]; d != nil {
		l.define(d)
	}
	return l.types.Complete(t)
}

// define makes the definition of a type that a user has defined, and of those on which it depends.
func (l *linker) define(d *TypeDescriptor) {
	if d.def != nil || l.defining[d] {
		return
	}
	l.defining[d] = true
	parent := l.typ(d.Parent)
	if d.def != nil {
		return // A range type has defined its multirange type.
	}
	fields := slices.Clone(d.Fields)
	for i := range fields {
		fields[i].Type = l.typ(fields[i].Type)
	}
	d.Parent, d.Fields = parent, fields
	l.named(d, types.NewDefined(&types.Defined{
		OID: types.OID(d.ID), Array: types.OID(d.ArrayID), Kind: d.Kind, Version: d.Version,
		Schema: d.Schema, Name: d.Name, ArrayName: d.ArrayName, Labels: d.Labels,
		Parent: parent, Default: d.Default, NotNull: d.NotNull, Checks: d.Checks,
		Fields: fields,
	}))
	if multi := l.types.byOID[types.OID(d.MultirangeID)]; d.Kind == types.RangeKind && multi != nil {
		l.named(multi, types.NewDefined(&types.Defined{
			OID: types.OID(multi.ID), Array: types.OID(multi.ArrayID), Kind: multi.Kind, Version: multi.Version,
			Schema: multi.Schema, Name: multi.Name, ArrayName: multi.ArrayName,
		}))
		types.PairRanges(d.def, multi.def, parent)
	}
}

func (l *linker) named(d *TypeDescriptor, def *types.Defined) {
	d.def = def
	l.types.byName[qualifiedName{d.Schema, d.Name}], l.types.byName[qualifiedName{d.Schema, d.ArrayName}] = def.Type(), def.ArrayType()
}

func (s *schemaSnapshot) linked(id uint64) *TableDescriptor { return s.byID[id] }

func (s *schemaSnapshot) linkedNamed(schema, name string) *TableDescriptor {
	return s.byName[qualifiedName{schema, name}]
}

func (s *schemaSnapshot) linkedAll() []*TableDescriptor { return s.list }

func (w *withTemporary) linked(id uint64) *TableDescriptor { return w.byID[id] }

func (w *withTemporary) linkedNamed(schema, name string) *TableDescriptor {
	if schema != w.schema {
		return nil
	}
	return w.named(name)
}

func (w *withTemporary) linkedAll() []*TableDescriptor { return slices.Collect(maps.Values(w.byID)) }
