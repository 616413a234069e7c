package ddl

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// tableOption is a storage option of a table: an integer, a number or a word within bounds, otherwise a Boolean.
type tableOption struct {
	kind     byte // 'i', 'r', 'e' or 'b'
	min, max float64
	toast    bool // also of the table's TOAST table
}

// tableOptionKinds are the options that PostgreSQL 15 has. They are shown to clients, and have no effect.
var tableOptionKinds = map[string]tableOption{
	"autovacuum_enabled": {kind: 'b', toast: true}, "user_catalog_table": {kind: 'b'}, "vacuum_truncate": {kind: 'b', toast: true},
	"vacuum_index_cleanup": {kind: 'e', toast: true},

	"fillfactor":                            {kind: 'i', min: 10, max: 100},
	"toast_tuple_target":                    {kind: 'i', min: 128, max: 8160},
	"parallel_workers":                      {kind: 'i', min: 0, max: 1024},
	"autovacuum_vacuum_threshold":           {kind: 'i', min: 0, max: math.MaxInt32, toast: true},
	"autovacuum_vacuum_insert_threshold":    {kind: 'i', min: -1, max: math.MaxInt32, toast: true},
	"autovacuum_analyze_threshold":          {kind: 'i', min: 0, max: math.MaxInt32},
	"autovacuum_vacuum_cost_limit":          {kind: 'i', min: 1, max: 10000, toast: true},
	"autovacuum_freeze_min_age":             {kind: 'i', min: 0, max: 1e9, toast: true},
	"autovacuum_multixact_freeze_min_age":   {kind: 'i', min: 0, max: 1e9, toast: true},
	"autovacuum_freeze_max_age":             {kind: 'i', min: 1e5, max: 2e9, toast: true},
	"autovacuum_multixact_freeze_max_age":   {kind: 'i', min: 1e4, max: 2e9, toast: true},
	"autovacuum_freeze_table_age":           {kind: 'i', min: 0, max: 2e9, toast: true},
	"autovacuum_multixact_freeze_table_age": {kind: 'i', min: 0, max: 2e9, toast: true},
	"log_autovacuum_min_duration":           {kind: 'i', min: -1, max: math.MaxInt32, toast: true},
	"autovacuum_vacuum_cost_delay":          {kind: 'r', min: 0, max: 100, toast: true},
	"autovacuum_vacuum_scale_factor":        {kind: 'r', min: 0, max: 100, toast: true},
	"autovacuum_vacuum_insert_scale_factor": {kind: 'r', min: 0, max: 100, toast: true},
	"autovacuum_analyze_scale_factor":       {kind: 'r', min: 0, max: 100},
}

// tableOptions adds the storage options of WITH or SET to those that a table has. Those of its TOAST table, which percodb does not have, are only checked.
func tableOptions(t *catalog.TableDescriptor, options []ast.StorageOption) error {
	var given []string
	for _, o := range options {
		name, value := strings.ToLower(o.Name), o.Value
		if value == "" {
			value = "true"
		}
		if slices.Contains(given, name) {
			return pgerror.New(pgerror.InvalidParameterValue, "parameter %q specified more than once", o.Name)
		}
		given = append(given, name)
		if name == "oids" {
			var oids bool
			if err := parseBoolOption(name, value, &oids); err != nil {
				return err
			}
			if oids {
				return pgerror.New(pgerror.FeatureNotSupported, "tables declared WITH OIDS are not supported")
			}
			continue
		}
		toast, err := checkTableOption(name, value)
		if err != nil {
			return err
		}
		if !toast {
			t.Options = append(withoutOption(slices.Clone(t.Options), name), name+"="+value)
		}
	}
	return nil
}

// alterOptions is SET (…) and RESET (…) of a table.
func (r *run) alterOptions(ctx context.Context, t *catalog.TableDescriptor, n *ast.SetStorage) error {
	next := t.Clone()
	var err error
	switch {
	case n.Action == "RESET":
		err = resetTableOptions(next, n.Options)
	case t.IsPartitioned():
		err = partitionedOptions(n.Options)
	default:
		err = tableOptions(next, n.Options)
	}
	if err != nil {
		return err
	}
	return r.update(ctx, t, next, false)
}

// setReplicaIdentity is REPLICA IDENTITY. It is kept and shown, and has no effect.
func (r *run) setReplicaIdentity(ctx context.Context, t *catalog.TableDescriptor, n *ast.SetStorage) error {
	next := t.Clone()
	next.Primary.ReplicaIdentity = false
	for i := range next.Indexes {
		next.Indexes[i].ReplicaIdentity = false
	}
	switch n.Action {
	case "REPLICA IDENTITY FULL":
		next.ReplicaIdentity = "f"
	case "REPLICA IDENTITY NOTHING":
		next.ReplicaIdentity = "n"
	case "REPLICA IDENTITY DEFAULT":
		next.ReplicaIdentity = ""
	default:
		ix, err := identifying(next, n.Name)
		if err != nil {
			return err
		}
		next.ReplicaIdentity, ix.ReplicaIdentity = "i", true
	}
	return r.update(ctx, t, next, false)
}

// identifying finds an index of t that identifies rows.
func identifying(t *catalog.TableDescriptor, name string) (*catalog.IndexDescriptor, error) {
	ix := t.IndexNamed(name)
	if ix == nil {
		return nil, pgerror.New(pgerror.UndefinedObject, "index %q for table %q does not exist", name, t.Name)
	}
	cannot := func(what string) error {
		return pgerror.New(pgerror.WrongObjectType, "cannot use %s index %q as replica identity", what, name)
	}
	switch {
	case !ix.Unique && !ix.Deferrable:
		return nil, cannot("non-unique")
	case ix.Deferrable:
		return nil, cannot("non-immediate")
	case ix.Where != nil:
		return nil, cannot("partial")
	case ix.State != catalog.IndexPublic:
		return nil, cannot("invalid")
	}
	for _, key := range ix.Columns {
		c := t.ColumnByID(key.ColumnID)
		switch {
		case c.Expr != nil:
			return nil, cannot("expression")
		case !c.NotNull:
			return nil, pgerror.New(pgerror.WrongObjectType, "index %q cannot be used as replica identity because column %q is nullable", name, c.Name)
		}
	}
	return ix, nil
}

// partitionedOptions checks the storage options of a partitioned table, which has none.
func partitionedOptions(options []ast.StorageOption) error {
	for _, o := range options {
		if !strings.EqualFold(o.Name, "oids") {
			return pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter %q", o.Name)
		}
	}
	return tableOptions(&catalog.TableDescriptor{}, options)
}

// resetTableOptions removes storage options.
func resetTableOptions(t *catalog.TableDescriptor, options []ast.StorageOption) error {
	t.Options = slices.Clone(t.Options)
	for _, o := range options {
		if o.Value != "" {
			return pgerror.New(pgerror.SyntaxError, "RESET must not include values for parameters")
		}
		t.Options = withoutOption(t.Options, strings.ToLower(o.Name))
	}
	return nil
}

// checkTableOption checks the name and the value of an option. toast: it is one of the TOAST table.
func checkTableOption(name, value string) (toast bool, err error) {
	space, base, toast := strings.Cut(name, ".")
	if !toast {
		base = name
	} else if space != "toast" {
		return false, pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter namespace %q", space)
	}
	o, ok := tableOptionKinds[base]
	if !ok || toast && !o.toast {
		return false, pgerror.New(pgerror.InvalidParameterValue, "unrecognized parameter %q", base)
	}
	return toast, o.check(base, value)
}

func (o tableOption) check(name, value string) error {
	invalid := func(kind string) *pgerror.Error {
		return pgerror.New(pgerror.InvalidParameterValue, "invalid value for %s option %q: %s", kind, name, value)
	}
	var on bool
	switch o.kind {
	case 'b':
		if err := parseBoolOption(name, value, &on); err != nil {
			return err
		}
		return nil
	case 'e':
		if strings.EqualFold(value, "auto") || parseBoolOption(name, value, &on) == nil {
			return nil
		}
		return invalid("enum").WithDetail("Valid values are \"on\", \"off\", and \"auto\".")
	}
	v, err := strconv.ParseFloat(value, 64)
	low, high := strconv.FormatFloat(o.min, 'f', 6, 64), strconv.FormatFloat(o.max, 'f', 6, 64)
	kind := "floating point"
	if o.kind == 'i' {
		kind, low, high = "integer", strconv.FormatFloat(o.min, 'f', 0, 64), strconv.FormatFloat(o.max, 'f', 0, 64)
	}
	switch {
	case err != nil:
		return invalid(kind)
	case !(v >= o.min && v <= o.max):
		return pgerror.New(pgerror.InvalidParameterValue, "value %s out of bounds for option %q", value, name).
			WithDetail("Valid values are between \"%s\" and \"%s\".", low, high)
	}
	return nil
}
