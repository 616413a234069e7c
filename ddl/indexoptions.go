package ddl

import (
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// requireMethod checks that the index method of CREATE INDEX exists and can do what the statement asks of it.
func requireMethod(n *ast.CreateIndex) error {
	refuse := func(what string) error {
		return pgerror.New(pgerror.FeatureNotSupported, "access method %q does not support %s", n.Method, what)
	}
	switch n.Method {
	case "", "btree":
		return nil
	case "hash", "brin", "gin", "gist", "spgist":
	default:
		return pgerror.New(pgerror.UndefinedObject, "access method %q does not exist", n.Method)
	}
	switch {
	case n.Unique:
		return refuse("unique indexes")
	case len(n.Include) > 0 && n.Method != "gist" && n.Method != "spgist":
		return refuse("included columns")
	case (n.Method == "hash" || n.Method == "spgist") && len(n.Columns) > 1:
		return refuse("multicolumn indexes")
	}
	for i := range n.Columns {
		switch c := &n.Columns[i]; {
		case c.Asc || c.Desc:
			return refuse("ASC/DESC options")
		case c.Nulls:
			return refuse("NULLS FIRST/LAST options")
		}
	}
	return nil
}

// noticeMethod reports that an index is of another kind than its method says.
func (r *run) noticeMethod(ix *catalog.IndexDescriptor) {
	built := "btree, which answers all that " + ix.Method + " does"
	switch ix.Method {
	case "", "gin":
		return
	case "gist", "spgist":
		built = "btree, which finds values and their order, but neither overlaps nor neighbours"
		if ix.Inverted != nil {
			built = "gin, which answers all that gist does but an order by distance"
		}
	}
	r.notice(pgerror.SuccessfulCompletion, "index %q is built as %s", ix.Name, built)
}

func requireTablespace(name string) error {
	switch name {
	case "", "pg_default":
		return nil
	case "pg_global":
		return pgerror.New(pgerror.InvalidParameterValue, "only shared relations can be placed in pg_global tablespace")
	}
	return pgerror.New(pgerror.UndefinedObject, "tablespace %q does not exist", name)
}

// numericOptions are the storage options of indexes that are numbers, with their bounds; others are boolean.
var numericOptions = map[string][2]int{"fillfactor": {10, 100}, "gin_pending_list_limit": {64, 2147483647}, "pages_per_range": {1, 131072}}

// methodOptions lists the storage options of each method.
var methodOptions = map[string][]string{
	"":      {"fillfactor", "deduplicate_items"},
	"btree": {"fillfactor", "deduplicate_items"},
	"hash":  {"fillfactor"},
	"brin":  {"pages_per_range", "autosummarize"},
	"gin":   {"fastupdate", "gin_pending_list_limit"},
	"gist":  {"fillfactor", "buffering"},

	"spgist": {"fillfactor"},
}

// indexOptions adds storage options to those that an index has. They are shown to clients, and have no effect.
func indexOptions(method string, have []string, options []ast.StorageOption) ([]string, error) {
	for _, o := range options {
		if !slices.Contains(methodOptions[method], o.Name) {
			return nil, pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter %q", o.Name)
		}
		if bounds, ok := numericOptions[o.Name]; ok {
			v, err := strconv.Atoi(o.Value)
			switch {
			case err != nil:
				return nil, pgerror.New(pgerror.InvalidParameterValue, "invalid value for integer option %q: %s", o.Name, o.Value)
			case v < bounds[0] || v > bounds[1]:
				return nil, pgerror.New(pgerror.InvalidParameterValue, "value %s out of bounds for option %q", o.Value, o.Name).
					WithDetail("Valid values are between \"%d\" and \"%d\".", bounds[0], bounds[1])
			}
		} else if o.Name != "buffering" || o.Value != "auto" {
			var v bool
			if err := parseBoolOption(o.Name, o.Value, &v); err != nil {
				return nil, err
			}
		}
		have = append(withoutOption(have, o.Name), o.Name+"="+o.Value)
	}
	return have, nil
}

func withoutOption(options []string, name string) []string {
	return slices.DeleteFunc(options, func(o string) bool { return strings.HasPrefix(o, name+"=") })
}

// operatorClass checks the operator class that a key names. class is it unless it is the type's default one; byBytes: it orders texts by their bytes.
func operatorClass(method string, path []string, t types.Type) (class string, byBytes bool, err error) {
	if len(path) == 0 {
		return "", false, nil
	}
	name := path[len(path)-1]
	switch method {
	case "":
		method = "btree"
	case "gist", "spgist":
		return name, false, nil // substituteClass has checked it.
	case "brin":
		base, _, ok := strings.Cut(name, "_minmax")
		if !ok {
			return "", false, pgerror.Unsupported("operator class \""+name+"\"", "Use the default one.")
		}
		name = base + "_ops"
	}
	rows := pgdata.OpClasses()
	exists := false
	for i := range rows.Len() {
		if rows.Value(i, "opcname") != name {
			continue
		}
		exists = true
		if in := types.OID(rows.Number(i, "opcintype")); accepts(in, name, t) {
			if rows.Value(i, "opcdefault") == "t" || method != "btree" || name == "varchar_ops" {
				return "", false, nil
			}
			return name, strings.HasSuffix(name, "_pattern_ops"), nil
		}
	}
	if in, ok := extensionClasses[name]; ok && method != "brin" {
		exists = true
		if t.Underlying().OID == in {
			if name == "citext_pattern_ops" {
				return name, true, nil
			}
			return "", false, nil
		}
	}
	if exists {
		return "", false, pgerror.New(pgerror.DatatypeMismatch, "operator class %q does not accept data type %s", name, t.Base())
	}
	return "", false, pgerror.New(pgerror.UndefinedObject, "operator class %q does not exist for access method %q", path[len(path)-1], method)
}

// extensionClasses are the operator classes of extensions, by name, with their types. All but citext_pattern_ops are default ones.
var extensionClasses = map[string]types.OID{
	"citext_ops": types.OIDCitext, "citext_pattern_ops": types.OIDCitext, "ltree_ops": types.OIDLtree, "btree_hstore_ops": types.OIDHstore, "hash_hstore_ops": types.OIDHstore,
}

// accepts reports whether an operator class for values of type in takes those of type t.
func accepts(in types.OID, class string, t types.Type) bool {
	t = t.Underlying()
	switch in {
	case types.OIDAnyArray:
		return t.IsArray()
	case types.OIDAnyEnum:
		return t.IsEnum()
	case types.OIDRecord:
		return t.IsComposite()
	case types.OIDText:
		return t.OID == types.OIDText || t.OID == types.OIDVarchar
	}
	if m := t.Methods(); m != nil && m.Borrows == in {
		return true
	}
	return t.OID == in
}

// setIndexOptions is SET and RESET of ALTER INDEX.
func setIndexOptions(ix *catalog.IndexDescriptor, c *ast.SetStorage) (err error) {
	if c.Action == "SET" {
		ix.Options, err = indexOptions("", ix.Options, c.Options)
		return err
	}
	for _, o := range c.Options {
		ix.Options = withoutOption(ix.Options, o.Name)
	}
	return nil
}
