package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// Describe implements builtin.Catalog.
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
	case classPgConstraint, classPgTrigger, classPgPolicy:
		return o.describePart(class, object)
	case classPgAttrdef:
		return o.describeDefault(object)
	case classPgCollation:
		kind = "collation "
		name, ok = o.CollationName(object)
	case classPgOperator:
		kind = "operator "
		name, ok = o.RoutineName(types.OIDRegoperator, object)
	case classPgCast:
		return o.describeCast(object)
	case classPgOpclass, classPgOpfamily:
		return o.describeClass(class, object)
	case classPgAuthid:
		kind = "role "
		name, ok = o.RoleName(object)
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
		if column != 0 {
			return o.describeAttribute(id, name, column)
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

// describeAttribute describes an attribute of the composite type with a name.
func (o *Objects) describeAttribute(id types.OID, name string, column int) (string, bool) {
	for _, d := range o.Resolver().Types().All() {
		if d.RelationID != uint64(id) {
			continue
		}
		for _, f := range d.Fields {
			if f.ID == uint32(column) {
				return "column " + f.Name + " of composite type " + name, true
			}
		}
	}
	return "", false
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

// describePart describes a constraint, a trigger or a policy.
func (o *Objects) describePart(class, id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	if class == classPgConstraint {
		for _, d := range r.Types().All() {
			for i := range d.Checks {
				if d.Checks[i].OID == id {
					return "constraint " + d.Checks[i].Name, true
				}
			}
		}
	}
	all, err := r.Relations(background())
	if err != nil {
		return "", false
	}
	for _, t := range all {
		if name, ok := partOf(r, t, class, uint32(id)); ok {
			on, found := o.describeRelation(types.OID(t.OID()), 0)
			return name + " on " + on, found
		}
	}
	return "", false
}

// partOf finds a constraint, a trigger or a policy of a relation.
func partOf(r catalog.Resolver, t *catalog.TableDescriptor, class types.OID, id uint32) (string, bool) {
	switch class {
	case classPgConstraint:
		own, err := constraints(background(), r, t)
		for _, c := range own {
			if err == nil && c.oid == id {
				return "constraint " + c.name, true
			}
		}
	case classPgTrigger:
		for i := range t.Triggers {
			if t.Triggers[i].OID == id {
				return "trigger " + t.Triggers[i].Name, true
			}
		}
	case classPgPolicy:
		for i := range t.Policies {
			if t.Policies[i].OID == id {
				return "policy " + t.Policies[i].Name, true
			}
		}
	}
	return "", false
}

// describeDefault describes the default of a column.
func (o *Objects) describeDefault(id types.OID) (string, bool) {
	if id>>31 == 0 {
		return "", false
	}
	_, t := o.relation(id << 1 >> 12)
	if t == nil {
		return "", false
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if (c.Default != "" || c.Generated != "") && attrdefOID(t, c) == uint32(id) {
			column, ok := o.describeRelation(types.OID(t.OID()), int(c.ID))
			return "default value for " + column, ok
		}
	}
	return "", false
}
