package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// Describe implements builtin.Catalog: relations and their columns, functions, types, schemas, extensions and objects of full-text search.
func (o *Objects) Describe(class, object types.OID, column int) (string, bool) {
	name, ok := "", false
	kind := ""
	switch class {
	case classPgClass:
		return o.describeRelation(object, column)
	case classPgProc:
		kind = "function "
		name, ok = o.RoutineName(types.OIDRegprocedure, object)
	case classPgType:
		kind = "type "
		if name, ok = o.TypeName(object); !ok {
			_, ok = pgdata.Types().ByOID(uint32(object))
			name = types.Type{OID: object, Mod: -1}.String()
		}
	case classPgRewrite:
		_, view := o.viewOfRule(object)
		if view == nil {
			return "", false
		}
		described, found := o.describeRelation(types.OID(view.OID()), 0)
		return "rule " + viewRule + " on " + described, found
	case classPgNamespace:
		kind = "schema "
		name, ok = o.SchemaName(object)
	case classPgTSConfig:
		kind = "text search configuration "
		name, ok = o.TextSearchName(types.OIDRegconfig, object)
	case classPgTSDict:
		kind = "text search dictionary "
		name, ok = o.TextSearchName(types.OIDRegdictionary, object)
	case classPgExtension:
		kind = "extension "
		name, ok = o.extensionName(object)
	}
	return kind + name, ok
}

// describeRelation describes a relation or an index, or a column of a relation.
func (o *Objects) describeRelation(id types.OID, column int) (string, bool) {
	name, ok := o.RelationName(id)
	if !ok {
		return "", false
	}
	_, t := o.relation(id)
	switch {
	case t == nil:
		if _, _, ix := o.index(id); ix != nil {
			return "index " + name, true
		}
		return "composite type " + name, true
	case t.Materialized:
		name = "materialized view " + name
	case t.Kind == catalog.KindView:
		name = "view " + name
	case t.Kind == catalog.KindSequence:
		name = "sequence " + name
	default:
		name = "table " + name
	}
	if column == 0 {
		return name, true
	}
	ord := t.Ordinal(uint32(column))
	if ord < 0 {
		return "", false
	}
	return "column " + t.Columns[ord].Name + " of " + name, true
}

// extensionName returns the name of an extension, quoted if need be.
func (o *Objects) extensionName(id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	for _, d := range r.Extensions().All() {
		if d.ID == uint64(id) {
			return keyword.QuoteIdent(d.Name), true
		}
	}
	return "", false
}
