package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/entries"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// newExclusion makes the index of an EXCLUDE constraint of t. It adds the expressions of the constraint to t, which the caller owns.
func (r *run) newExclusion(ctx context.Context, t *catalog.TableDescriptor, c *ast.TableConstraint, taken func(string) bool) (ix catalog.IndexDescriptor, err error) {
	ix = catalog.IndexDescriptor{ID: t.NextIndexID, Name: c.Name, Constraint: true, Method: c.Method}
	ix.Deferrable, ix.Deferred = c.Deferrable, c.Deferred
	if err := requireExclusionMethod(c); err != nil {
		return ix, err
	}
	if ix.Options, err = indexOptions(c.Method, nil, c.Options); err != nil {
		return ix, err
	}
	if err := requireTablespace(c.Tablespace); err != nil {
		return ix, err
	}
	var names []string
	for i := range c.Exclude {
		e, err := r.excludeElement(ctx, t, c.Method, &c.Exclude[i])
		if err != nil {
			return ix, err
		}
		names = appendIndexName(names, &c.Exclude[i].IndexColumn)
		ix.Exclude = append(ix.Exclude, e)
	}
	ix.Columns = exclusionKeys(t, ix.Exclude)
	if ix.Include, err = includedIDs(t, c.Include); err != nil {
		return ix, err
	}
	if c.Where != nil {
		if ix.Where, err = r.indexPredicate(ctx, t, c.Where); err != nil {
			return ix, err
		}
	}
	if ix.Name == "" {
		ix.Name = chooseName(t.Name, joinColumns(names), "excl", taken)
	} else if taken(ix.Name) {
		return ix, relationExists(ix.Name).At(c.Position())
	}
	oid, err := r.ch.NewID(ctx)
	ix.OID = uint32(oid)
	return ix, err
}

// exclusionKeys are the keys of the index of EXCLUDE: see catalog.LateKey.
func exclusionKeys(t *catalog.TableDescriptor, elements []catalog.ExcludeElement) []catalog.IndexColumn {
	var keys []catalog.IndexColumn
	has := func(id uint32) bool {
		return slices.ContainsFunc(keys, func(c catalog.IndexColumn) bool { return c.ColumnID == id })
	}
	add := func(op string, fits func(types.Type) bool) {
		for _, e := range elements {
			if col := t.ColumnByID(e.ColumnID); e.Operator == op && fits(col.Type) && !has(e.ColumnID) {
				coll := col.Type.Coll
				if e.Coll != nil {
					coll = e.Coll
				}
				keys = append(keys, catalog.NewIndexColumn(col, coll))
				if op != "=" {
					return
				}
			}
		}
	}
	add("=", rowenc.Indexable)
	add("&&", func(t types.Type) bool { return t.IsRange() && rowenc.Indexable(t) })
	return keys
}

// requireExclusionMethod checks the index method of EXCLUDE.
func requireExclusionMethod(c *ast.TableConstraint) error {
	refuse := func(what string) error {
		return pgerror.New(pgerror.FeatureNotSupported, "access method %q does not support %s", c.Method, what)
	}
	switch c.Method {
	case "", "btree", "hash", "gist", "spgist":
	case "gin", "brin":
		return refuse("exclusion constraints")
	default:
		return pgerror.New(pgerror.UndefinedObject, "access method %q does not exist", c.Method)
	}
	if (c.Method == "hash" || c.Method == "spgist") && len(c.Exclude) > 1 {
		return refuse("multicolumn indexes")
	}
	for i := range c.Exclude {
		switch e := &c.Exclude[i]; {
		case c.Method == "" || c.Method == "btree":
		case e.Asc || e.Desc:
			return refuse("ASC/DESC options")
		case e.Nulls:
			return refuse("NULLS FIRST/LAST options")
		}
	}
	return nil
}

// excludeElement makes an element of EXCLUDE.
func (r *run) excludeElement(ctx context.Context, t *catalog.TableDescriptor, method string, n *ast.ExcludeElement) (catalog.ExcludeElement, error) {
	e := catalog.ExcludeElement{Operator: n.Operator}
	if e.Operator == "!=" {
		e.Operator = "<>"
	}
	col, err := r.keyColumn(ctx, t, &n.IndexColumn, ofIndex)
	if err != nil {
		return e, err
	}
	e.ColumnID = col.ID
	typ, err := planner.CollateType(col.Type, n.Collation, r.r, n.Position())
	if err != nil {
		return e, err
	}
	if len(n.Collation) > 0 {
		e.Coll = typ.Coll
	}
	class, err := r.exclusionClass(method, n.OpClass, typ)
	if err != nil {
		return e, err
	}
	if !class.isDefault {
		e.Class = class.name
	}
	found, err := r.r.Extensions().Sources(catalog.Path(r.r)).ResolveOperator(e.Operator, typ.Underlying(), typ.Underlying())
	if err != nil {
		return e, err
	}
	left, right, commutes := declaredOperator(e.Operator, found)
	signature := e.Operator + "(" + builtin.TypeName(left) + "," + builtin.TypeName(right) + ")"
	if !commutes {
		return e, pgerror.New(pgerror.WrongObjectType, "operator %s is not commutative", signature).
			WithDetail("Only commutative operators can be used in exclusion constraints.")
	}
	if !slices.Contains(class.operators, e.Operator) {
		return e, pgerror.New(pgerror.WrongObjectType, "operator %s is not a member of operator family %q", signature, class.family).
			WithDetail("The exclusion operator must be related to the index operator class for the constraint.")
	}
	return e, nil
}

// declaredOperator returns the types with which an operator between two values of one type is declared, and whether it is its own commutator.
func declaredOperator(name string, o *builtin.Overload) (left, right types.Type, commutes bool) {
	rows := pgdata.Operators()
	for _, args := range [][2]types.Type{{o.Args[0].Underlying(), o.Args[1].Underlying()}, {polymorphic(o.Args[0]), polymorphic(o.Args[1])}} {
		for i, id := range rows.OIDs {
			if rows.Value(i, "oprname") == name && types.OID(rows.Number(i, "oprleft")) == args[0].OID && types.OID(rows.Number(i, "oprright")) == args[1].OID {
				return args[0], args[1], rows.Number(i, "oprcom") == id
			}
		}
	}
	return o.Args[0], o.Args[1], name == "=" || name == "<>" || name == "&&" // of extensions
}

// polymorphic returns the type with which operators over all types of t's kind are declared.
func polymorphic(t types.Type) types.Type {
	t = t.Underlying()
	switch {
	case t.IsRange():
		return types.Type{OID: types.OIDAnyRange, Mod: -1}
	case t.IsMultirange():
		return types.Type{OID: types.OIDAnyMultirange, Mod: -1}
	case t.IsArray():
		return types.Type{OID: types.OIDAnyArray, Mod: -1}
	}
	return t
}

// exclusionClass is an operator class of an element of EXCLUDE, as far as it matters there.
type exclusionClass struct {
	name, family string
	isDefault    bool
	operators    []string // those that are commutative
}

// gistClasses are PostgreSQL's classes of the methods gist and spgist with commutative operators, by type.
var gistClasses = map[types.OID]exclusionClass{
	types.OIDBox:     {"box_ops", "box_ops", true, []string{"&&", "~="}},
	types.OIDCircle:  {"circle_ops", "circle_ops", true, []string{"&&", "~="}},
	types.OIDPolygon: {"poly_ops", "poly_ops", true, []string{"&&", "~="}},
	types.OIDPoint:   {"point_ops", "point_ops", true, []string{"~="}},
	types.OIDInet:    {"inet_ops", "network_ops", false, []string{"=", "<>", "&&"}},
	types.OIDCidr:    {"inet_ops", "network_ops", false, []string{"=", "<>", "&&"}},
	types.OIDLtree:   {"gist_ltree_ops", "gist_ltree_ops", true, []string{"="}},
}

var (
	rangeClass      = exclusionClass{"range_ops", "range_ops", true, []string{"=", "&&", "-|-"}}
	multirangeClass = exclusionClass{"multirange_ops", "multirange_ops", true, []string{"=", "&&", "-|-"}}
)

// exclusionClass finds the operator class of an element of EXCLUDE.
func (r *run) exclusionClass(method string, path []string, t types.Type) (exclusionClass, error) {
	base := t.Underlying()
	if method == "" || method == "btree" || method == "hash" {
		name, _, err := operatorClass(method, path, t)
		if err != nil {
			return exclusionClass{}, err
		}
		if !base.Ordered() {
			return exclusionClass{}, noDefaultClass(t, methodOf(method))
		}
		return exclusionClass{name, familyOf(base), name == "", []string{"="}}, nil
	}
	class, found := gistClasses[base.OID]
	switch {
	case base.IsRange():
		class, found = rangeClass, true
	case base.IsMultirange():
		class, found = multirangeClass, true
	}
	if len(path) > 0 {
		name := path[len(path)-1]
		if found && class.name == name {
			return class, nil
		}
		if scalar, ok := r.scalarClass(method, base); ok && scalar.name == name {
			return scalar, nil
		}
		return exclusionClass{}, pgerror.New(pgerror.UndefinedObject, "operator class %q does not exist for access method %q", name, method)
	}
	if found && class.isDefault {
		return class, nil
	}
	if scalar, ok := r.scalarClass(method, base); ok {
		return scalar, nil
	}
	return exclusionClass{}, noDefaultClass(t, method)
}

// gistExtension has operator classes of the method gist for types with an order.
const gistExtension = "btree_gist"

// gistNames are the types of which the extension btree_gist has operator classes, as it names them.
var gistNames = map[types.OID]string{
	types.OIDInt2: "int2", types.OIDInt4: "int4", types.OIDInt8: "int8", types.OIDFloat4: "float4", types.OIDFloat8: "float8",
	types.OIDNumeric: "numeric", types.OIDTimestamp: "timestamp", types.OIDTimestamptz: "timestamptz", types.OIDTime: "time",
	types.OIDTimetz: "timetz", types.OIDDate: "date", types.OIDInterval: "interval", types.OIDOid: "oid", types.OIDText: "text",
	types.OIDVarchar: "text", types.OIDBPChar: "bpchar", types.OIDBytea: "bytea", types.OIDUUID: "uuid", types.OIDBool: "bool",
	types.OIDInet: "inet", types.OIDCidr: "cidr", types.OIDMoney: "cash", types.OIDMacaddr: "macad", types.OIDBit: "bit", types.OIDVarbit: "vbit",
}

// scalarClass is the class of btree_gist for a type, if the extension is installed.
func (r *run) scalarClass(method string, t types.Type) (exclusionClass, bool) {
	name := gistNames[t.OID]
	if t.IsEnum() {
		name = "enum"
	}
	if name == "" || method != "gist" || r.r.Extensions().Named(gistExtension) == nil {
		return exclusionClass{}, false
	}
	name = "gist_" + name + "_ops"
	return exclusionClass{name, name, true, []string{"=", "<>"}}, true
}

func methodOf(method string) string {
	if method == "" {
		return "btree"
	}
	return method
}

func noDefaultClass(t types.Type, method string) *pgerror.Error {
	return pgerror.New(pgerror.UndefinedObject, "data type %s has no default operator class for access method %q", t.Base(), method).
		WithHint("You must specify an operator class for the index or define a default operator class for the data type.")
}

// familyOf names the operator family of a type's default btree operator class.
func familyOf(t types.Type) string {
	classes, families := pgdata.OpClasses(), pgdata.OpFamilies()
	for i := range classes.OIDs {
		if classes.Value(i, "opcdefault") == "t" && accepts(types.OID(classes.Number(i, "opcintype")), "", t) {
			if at, ok := families.ByOID(classes.Number(i, "opcfamily")); ok {
				return families.Value(at, "opfname")
			}
		}
	}
	return t.Base().String() + "_ops"
}

// includedIDs finds the columns of INCLUDE.
func includedIDs(t *catalog.TableDescriptor, columns []ast.IndexColumn) ([]uint32, error) {
	var ids []uint32
	for i := range columns {
		ord := t.ColumnNamed(columns[i].Name)
		if ord < 0 {
			return nil, pgerror.New(pgerror.UndefinedColumn, "column %q named in key does not exist", columns[i].Name).At(columns[i].Position())
		}
		ids = append(ids, t.Columns[ord].ID)
	}
	return ids, nil
}

// verifyLateKeys fails unless the rows of t satisfy the constraints of those indexes that are checked late. The table is closed, and the indexes
// have their entries.
func (r *run) verifyLateKeys(ctx context.Context, t *catalog.TableDescriptor, indexes []*catalog.IndexDescriptor) error {
	for _, ix := range indexes {
		if !ix.CheckedLate() {
			continue
		}
		if err := r.verifyLateKey(ctx, t, ix); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) verifyLateKey(ctx context.Context, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) error {
	key, err := planner.BindLateKey(ctx, t, ix, r.r, r.Env)
	if err != nil {
		return err
	}
	seeker, err := entries.NewSeeker(key, &expr.Context{Ctx: ctx, Env: r.Env})
	if err != nil {
		return err
	}
	reader := r.txn
	if r.alone { // As in scanRows.
		if reader, err = r.DB.Begin(ctx); err != nil {
			return err
		}
		defer reader.Close()
	}
	var own []byte
	defer r.actAsOwner(t)()
	return r.scanRows(ctx, t, "checking constraint", func(row types.Row) error {
		ok, err := seeker.Begin(row)
		if !ok || err != nil {
			return err
		}
		if own, _, err = rowenc.AppendKey(own[:0], t, &t.Primary, row); err != nil {
			return err
		}
		found, err := seeker.Find(ctx, reader, own)
		if found == nil || err != nil {
			return err
		}
		return r.lateViolation(key, seeker)
	})
}

// lateViolation is the error for rows that conflict under a constraint that is being made.
func (r *run) lateViolation(key *planner.LateKey, seeker *entries.Seeker) error {
	ix := key.Index
	names, texts := entries.Describe(key, seeker.Values(), &r.Env.Format)
	if key.Conflict == nil {
		e := pgerror.New(pgerror.UniqueViolation, "could not create unique index %q", ix.Name).WithDetail("Key (%s)=(%s) is duplicated.", names, texts)
		e.Schema, e.Table, e.Constraint = key.Table.Schema, key.Table.Name, ix.Name
		return e
	}
	_, others := entries.Describe(key, seeker.Found(), &r.Env.Format)
	e := pgerror.New(pgerror.ExclusionViolation, "could not create exclusion constraint %q", ix.Name).
		WithDetail("Key (%s)=(%s) conflicts with key (%s)=(%s).", names, texts, names, others)
	e.Schema, e.Table, e.Constraint = key.Table.Schema, key.Table.Name, ix.Name
	return e
}
