package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// lackingKinds are the kinds of objects of which percodb has PostgreSQL's own at most, with the words by which messages call them.
var lackingKinds = map[string]string{
	"ACCESS METHOD": "access method", "CONVERSION": "conversion", "EVENT TRIGGER": "event trigger", "FOREIGN DATA WRAPPER": "foreign-data wrapper",
	"FOREIGN TABLE": "foreign table", "LANGUAGE": "language", "PUBLICATION": "publication", "RULE": "rule", "SERVER": "server", "STATISTICS": "statistics object", "SUBSCRIPTION": "subscription",
	"TABLESPACE": "tablespace", "TRANSFORM": "transform", "USER MAPPING": "user mapping",
}

// dropLacking is DROP of objects of such a kind: as in PostgreSQL there are none of that name, or the system needs it.
func (r *run) dropLacking(ctx context.Context, n *ast.DropObjects) error {
	for i := range n.Objects {
		o := &n.Objects[i]
		if o.Kind == "RULE" {
			if absent, err := r.ruleTableAbsent(ctx, o, n.IfExists); err != nil || absent {
				return err
			}
		}
		what := describeLacking(o)
		switch {
		case isSystemObject(o):
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because it is required by the database system", what)
		case !n.IfExists:
			return pgerror.New(pgerror.UndefinedObject, "%s does not exist", what)
		}
		r.noticeAbsent("%s does not exist, skipping", what)
	}
	return nil
}

// describeLacking names an object as messages do.
func describeLacking(o *ast.Object) string {
	kind := lackingKinds[o.Kind]
	name := strings.Join(o.Name, ".")
	switch o.Kind {
	case "RULE":
		return kind + " \"" + name + "\" for relation \"" + o.On[len(o.On)-1] + "\""
	case "TRANSFORM":
		return kind + " for type " + o.Types[0].String() + " language \"" + o.Using + "\""
	case "USER MAPPING":
		return "server \"" + o.Using + "\""
	}
	return kind + " \"" + name + "\""
}

// ruleTableAbsent looks up the relation of a rule. If there is none, and the rule need not exist, it says so.
func (r *run) ruleTableAbsent(ctx context.Context, o *ast.Object, ifExists bool) (absent bool, err error) {
	name := pathName(o.Pos, o.On)
	t, err := r.find(ctx, name)
	switch {
	case err != nil && ifExists:
		return true, r.noticeAbsentRelation(ctx, name)
	case err != nil:
		return false, err
	case t == nil && ifExists:
		return true, r.noticeAbsentRelation(ctx, name)
	case t == nil:
		_, err := r.mustFind(ctx, name)
		return false, unplaced(err)
	case t.Kind == catalog.KindView && o.Name[0] == "_RETURN":
		return false, pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop rule _RETURN on view %s because view %s requires it", t.Name, t.Name).
			WithHint("You can drop view " + t.Name + " instead.")
	}
	return false, nil
}

// systemObjects are the names that every database has.
var systemObjects = map[string][]string{
	"LANGUAGE":      {"internal", "c", "sql"},
	"ACCESS METHOD": {"heap", "btree", "hash", "gist", "gin", "spgist", "brin"},
	"TABLESPACE":    {"pg_default", "pg_global"},
}

func isSystemObject(o *ast.Object) bool {
	if o.Name == nil {
		return false
	}
	return slices.Contains(systemObjects[o.Kind], o.Name[len(o.Name)-1])
}
