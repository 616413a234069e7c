package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// The rows of pg_rewrite: a view has one rule, "_RETURN", which is its query. There are no others.

const (
	classPgRewrite = 2618
	// viewRule is the name of a view's rule.
	viewRule = "_RETURN"
)

// ruleOID returns the OID of a view's rule: that of the default of a column which no relation has.
func ruleOID(t *catalog.TableDescriptor) uint32 {
	return attrdefOID(t, &catalog.ColumnDescriptor{ID: 0x7FF})
}

func ruleRows(s *scan) error {
	return s.each(func(t *catalog.TableDescriptor) error {
		if !t.HasQuery() {
			return nil
		}
		return s.emit(col{"oid", oid(ruleOID(t))}, col{"rulename", text(viewRule)}, col{"ev_class", oid(t.OID())}, col{"ev_type", letter('1')},
			col{"ev_enabled", letter('O')}, col{"is_instead", boolean(true)}, col{"ev_qual", text("<>")}, col{"ev_action", text(t.ViewQuery)})
	})
}

// viewOfRule returns the view of a rule, nil if there is none.
func (o *Objects) viewOfRule(id types.OID) (catalog.Resolver, *catalog.TableDescriptor) {
	if id>>31 == 0 {
		return nil, nil
	}
	r, t := o.relation(id << 1 >> 12)
	if t == nil || !t.HasQuery() || ruleOID(t) != uint32(id) {
		return nil, nil
	}
	return r, t
}

// RuleDefinition implements builtin.Catalog.
func (o *Objects) RuleDefinition(id types.OID, pretty bool) (string, bool) {
	r, t := o.viewOfRule(id)
	if t == nil {
		return "", false
	}
	query, err := o.ViewText(background(), r, t, pretty, 0)
	if err != nil {
		return "", false
	}
	name := keyword.QuoteIdent(t.Schema) + "." + keyword.QuoteIdent(t.Name)
	if pretty {
		name = relationName(background(), r, t)
	}
	return "CREATE RULE " + keyword.QuoteIdent(viewRule) + " AS\n    ON SELECT TO " + name + " DO INSTEAD " + query, true
}
