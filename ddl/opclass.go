package ddl

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// CREATE and ALTER OPERATOR FAMILY, CREATE OPERATOR CLASS. What else changes them is in opclassalter.go.

// classMethod is what an access method's operator classes consist of.
type classMethod struct {
	operators, functions int // the highest numbers
}

// classMethods are the access methods of which users can make operator classes.
var classMethods = map[string]classMethod{"btree": {5, 5}, "hash": {1, 3}}

// classMethodNamed finds an access method.
func (r *run) classMethodNamed(name string) (classMethod, error) {
	m, ok := classMethods[name]
	if ok {
		return m, nil
	}
	return m, requireAnyMethod(name)
}

// requireAnyMethod fails unless there is an access method with a name.
func requireAnyMethod(name string) error {
	switch name {
	case "btree", "hash", "gin", "gist", "spgist", "brin":
		return nil
	}
	return pgerror.New(pgerror.UndefinedObject, "access method %q does not exist", name)
}

// otherMethod is the error for an access method of which users cannot make operator classes or families.
func otherMethod(kind, method string) error {
	return pgerror.Unsupported("An operator "+kind+" for access method "+method, "Make one for btree or hash: the keys of indexes of other methods are percodb's own.")
}

// createFamily is CREATE OPERATOR FAMILY.
func (r *run) createFamily(ctx context.Context, n *ast.OperatorFamily) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.operationSchema(ctx, name)
	if err != nil {
		return err
	}
	if _, err := r.classMethodNamed(n.Method); err != nil {
		return err
	}
	if !r.access.Superuser() {
		return pgerror.New(pgerror.InsufficientPrivilege, "must be superuser to create an operator family")
	}
	if _, ok := classMethods[n.Method]; !ok {
		return otherMethod("family", n.Method)
	}
	if r.r.Operations().FindFamily(schema, n.Method, name.Name) != nil {
		return pgerror.New(pgerror.DuplicateObject, "operator family %q for access method %q already exists", name.Name, n.Method)
	}
	_, err = r.newFamily(ctx, schema, name.Name, n.Method)
	return err
}

func (r *run) newFamily(ctx context.Context, schema, name, method string) (*catalog.OpFamilyDescriptor, error) {
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return nil, err
	}
	d := &catalog.OpFamilyDescriptor{ID: id, Method: method, Schema: schema, Name: name, Owned: catalog.Owned{Owner: r.User}}
	return d, r.putFamily(ctx, d)
}

// foundFamily is an operator family that a statement names.
type foundFamily struct {
	oid  types.OID
	name string
	own  *catalog.OpFamilyDescriptor // nil: one of PostgreSQL
}

// classSchemas returns the name of an operator class or family of a method, and the schemas in which it is looked for.
//
// Errors: *absentOperator.
func (r *run) classSchemas(ctx context.Context, path []string, method string) (name ast.TableName, schemas []string, err error) {
	if err := requireAnyMethod(method); err != nil {
		return name, nil, absentBy(err)
	}
	name = pathName(0, path)
	if name.Schema == "" {
		return name, catalog.Path(r.r), nil
	}
	if err := r.requireSchemaOf(ctx, name); err != nil {
		return name, nil, absentBy(err)
	}
	return name, []string{name.Schema}, nil
}

// findFamily finds an operator family.
//
// Errors: *absentOperator.
func (r *run) findFamily(ctx context.Context, path []string, method string) (f foundFamily, err error) {
	name, schemas, err := r.classSchemas(ctx, path, method)
	if err != nil {
		return f, err
	}
	for _, schema := range schemas {
		if d := r.r.Operations().FindFamily(schema, method, name.Name); d != nil {
			return foundFamily{d.OID(), d.Name, d}, nil
		}
		if oid := pgcatalog.SystemFamily(method, name.Name); schema == catalog.SystemSchema && oid != 0 {
			return foundFamily{oid, name.Name, nil}, nil
		}
	}
	e := pgerror.New(pgerror.UndefinedObject, "operator family %q does not exist for access method %q", strings.Join(path, "."), method)
	return f, &absentOperator{e, e.Message + ", skipping"}
}

// familyNamed is findFamily for one that must exist.
func (r *run) familyNamed(ctx context.Context, path []string, method string) (foundFamily, error) {
	f, err := r.findFamily(ctx, path, method)
	if absent, ok := err.(*absentOperator); ok {
		err = absent.err
	}
	return f, err
}

// descriptor returns the descriptor to which members of the family are added.
func (r *run) familyDescriptor(f foundFamily, method string) *catalog.OpFamilyDescriptor {
	if d := r.r.Operations().Family(f.oid); d != nil {
		return d.Clone()
	}
	return &catalog.OpFamilyDescriptor{ID: uint64(f.oid), Method: method, Schema: catalog.SystemSchema, Name: f.name}
}

// createClass is CREATE OPERATOR CLASS.
func (r *run) createClass(ctx context.Context, n *ast.OperatorClass) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.operationSchema(ctx, name)
	if err != nil {
		return err
	}
	m, err := r.classMethodNamed(n.Method)
	if err != nil {
		return err
	}
	if !r.access.Superuser() {
		return pgerror.New(pgerror.InsufficientPrivilege, "must be superuser to create an operator class")
	}
	if _, ok := classMethods[n.Method]; !ok {
		return otherMethod("class", n.Method)
	}
	t, err := r.castType(&n.Type)
	if err != nil {
		return err
	}
	d := &catalog.OpClassDescriptor{Method: n.Method, Schema: schema, Name: name.Name, Type: t, Default: n.Default, Owned: catalog.Owned{Owner: r.User}}
	f := foundFamily{}
	if n.Family != nil {
		if f, err = r.familyNamed(ctx, n.Family, n.Method); err != nil {
			return err
		}
	} else if have := r.r.Operations().FindFamily(schema, n.Method, name.Name); have != nil {
		f = foundFamily{have.OID(), have.Name, have}
	}
	members, err := r.classMembers(ctx, d, m, n.Items)
	if err != nil {
		return err
	}
	if r.r.Operations().FindClass(schema, n.Method, name.Name) != nil {
		return pgerror.New(pgerror.DuplicateObject, "operator class %q for access method %q already exists", name.Name, n.Method)
	}
	if n.Default {
		if have := r.defaultClass(n.Method, t); have != "" {
			return pgerror.New(pgerror.DuplicateObject, "could not make operator class %q be default for type %s", name.Name, strings.Join(n.Type.Name, ".")).
				WithDetail("Operator class %q already is the default.", have)
		}
	}
	if f.oid == 0 {
		own, err := r.newFamily(ctx, schema, name.Name, n.Method)
		if err != nil {
			return err
		}
		f = foundFamily{own.OID(), own.Name, own}
	}
	if d.ID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	d.Family = f.oid
	if err := r.ch.PutOpClass(ctx, d); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	return r.addMembers(ctx, f, n.Method, members)
}

// defaultClass returns the name of the default operator class of exactly a type; "" for none.
func (r *run) defaultClass(method string, t types.Type) string {
	for _, d := range r.r.Operations().Classes() {
		if d.Default && d.Method == method && d.Type.OID == t.OID {
			return d.Name
		}
	}
	rows := pgdata.OpClasses()
	for row := range rows.Len() {
		if rows.Value(row, "opcdefault") == "t" && types.OID(rows.Number(row, "opcintype")) == t.OID && (method == "btree" || method == "hash" && hashes(t)) {
			return rows.Value(row, "opcname")
		}
	}
	return ""
}

// members are those that a statement adds to a family.
type members struct {
	operators []catalog.FamilyOperator
	functions []catalog.FamilyFunction
}

// classMembers reads the items of CREATE OPERATOR CLASS and ALTER OPERATOR FAMILY … ADD; d is nil for the latter.
func (r *run) classMembers(ctx context.Context, d *catalog.OpClassDescriptor, m classMethod, items []ast.OperatorItem) (all members, err error) {
	stored := false
	for i := range items {
		it := &items[i]
		switch it.Kind {
		case "OPERATOR":
			err = r.classOperator(ctx, &all, d, m, it)
		case "FUNCTION":
			err = r.classFunction(ctx, &all, d, m, it)
		default:
			if d == nil {
				return all, pgerror.New(pgerror.SyntaxError, "STORAGE cannot be specified in ALTER OPERATOR FAMILY")
			}
			if stored {
				return all, invalidObject("storage type specified more than once")
			}
			stored = true
			var t types.Type
			if t, err = r.castType(it.Storage); err == nil && t.OID != d.Type.OID {
				err = invalidObject("storage type cannot be different from data type for access method %q", d.Method)
			}
		}
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// memberNumber reads the number of a member.
func memberNumber(it *ast.OperatorItem, m classMethod) (int, error) {
	highest, kind := m.operators, "operator"
	if it.Kind == "FUNCTION" {
		highest, kind = m.functions, "function"
	}
	number, err := strconv.Atoi(it.Number)
	if err != nil || number < 1 || number > highest {
		return 0, invalidObject("invalid %s number %s, must be between 1 and %d", kind, it.Number, highest)
	}
	return number, nil
}

func (r *run) classOperator(ctx context.Context, all *members, d *catalog.OpClassDescriptor, m classMethod, it *ast.OperatorItem) error {
	number, err := memberNumber(it, m)
	if err != nil {
		return err
	}
	o := &ast.Object{Pos: it.Pos, Kind: "OPERATOR", Name: it.Operator, Types: it.Operands}
	left, right := types.Type{}, types.Type{}
	var oid types.OID
	if it.Operands == nil {
		if d == nil {
			return pgerror.New(pgerror.SyntaxError, "operator argument types must be specified in ALTER OPERATOR FAMILY")
		}
		if oid, err = r.operatorOfTypes(ctx, o, d.Type, d.Type); err != nil {
			return err
		}
	} else {
		_, oid, err = r.findOperator(ctx, o)
		if absent, ok := err.(*absentOperator); ok {
			err = absent.err
		}
		if err != nil {
			return err
		}
	}
	left, right, ret := r.operandsOf(oid)
	switch {
	case !left.Valid():
		return invalidObject("index operators must be binary")
	case it.Order != nil:
		method := "btree"
		if m == classMethods["hash"] {
			method = "hash"
		}
		return invalidObject("access method %q does not support ordering operators", method)
	case ret.OID != types.OIDBool:
		return invalidObject("index search operators must return boolean")
	}
	for _, have := range all.operators {
		if have.Strategy == number && have.Left == left.OID && have.Right == right.OID {
			return invalidObject("operator number %d for (%s,%s) appears more than once", number, builtin.TypeName(left), builtin.TypeName(right))
		}
	}
	all.operators = append(all.operators, catalog.FamilyOperator{Left: left.OID, Right: right.OID, Strategy: number, Operator: oid})
	return nil
}

// operatorOfTypes finds an operator that is named without its operands.
func (r *run) operatorOfTypes(ctx context.Context, o *ast.Object, left, right types.Type) (types.OID, error) {
	name := nameOf(o)
	if name.Schema != "" {
		if err := r.requireSchemaOf(ctx, name); err != nil {
			return 0, err
		}
	}
	if oid := pgcatalog.FindOperator(r.r, name.Schema, name.Name, left, right); oid != 0 {
		return oid, nil
	}
	return 0, pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s %s %s", builtin.TypeName(left), strings.Join(o.Name, "."), builtin.TypeName(right))
}

// operandsOf returns the types of an operator's operands and of its value.
func (r *run) operandsOf(oid types.OID) (left, right, ret types.Type) {
	if d := r.r.Operations().Operator(oid); d != nil {
		return d.Left, d.Right, d.Ret
	}
	t := pgdata.Operators()
	row, ok := t.ByOID(uint32(oid))
	if !ok {
		return left, right, ret
	}
	of := func(column string) types.Type {
		if oid := types.OID(t.Number(row, column)); oid != 0 {
			return types.Type{OID: oid, Mod: -1}
		}
		return types.Type{}
	}
	return of("oprleft"), of("oprright"), of("oprresult")
}

func (r *run) classFunction(ctx context.Context, all *members, d *catalog.OpClassDescriptor, m classMethod, it *ast.OperatorItem) error {
	number, err := memberNumber(it, m)
	if err != nil {
		return err
	}
	f, err := r.namedFunction(ctx, it.Function)
	if err != nil {
		return err
	}
	left, right, err := r.memberTypes(it)
	if err != nil {
		return err
	}
	own := types.Type{}
	if d != nil {
		own = d.Type
	}
	if m == classMethods["hash"] {
		err = hashFunction(f, number, &left, &right)
	} else {
		err = btreeFunction(f, number, own, &left, &right)
	}
	if err != nil {
		return err
	}
	if !left.Valid() || !right.Valid() {
		if !own.Valid() {
			return invalidObject("associated data types must be specified for index support function")
		}
		left, right = own, own
	}
	for _, have := range all.functions {
		if have.Number == number && have.Left == left.OID && have.Right == right.OID {
			return invalidObject("function number %d for (%s,%s) appears more than once", number, builtin.TypeName(left), builtin.TypeName(right))
		}
	}
	all.functions = append(all.functions, catalog.FamilyFunction{Left: left.OID, Right: right.OID, Number: number, Function: f.oid})
	return nil
}

// memberTypes reads the types that a member is for; zero Types if they are not written.
func (r *run) memberTypes(it *ast.OperatorItem) (left, right types.Type, err error) {
	switch len(it.Types) {
	case 0:
		return left, right, nil
	case 1, 2:
	default:
		return left, right, pgerror.New(pgerror.SyntaxError, "one or two argument types must be specified")
	}
	if left, err = r.castType(&it.Types[0]); err != nil || len(it.Types) == 1 {
		return left, left, err
	}
	right, err = r.castType(&it.Types[1])
	return left, right, err
}

// hashFunction checks a support function of the method hash.
func hashFunction(f foundFunction, number int, left, right *types.Type) error {
	switch {
	case number == 3:
		return pgerror.Unsupported("A support function for options of an operator class", "Leave it out.")
	case number == 1 && len(f.args) != 1:
		return invalidObject("hash function 1 must have one argument")
	case number == 1 && f.ret.OID != types.OIDInt4:
		return invalidObject("hash function 1 must return integer")
	case number == 2 && len(f.args) != 2:
		return invalidObject("hash function 2 must have two arguments")
	case number == 2 && f.ret.OID != types.OIDInt8:
		return invalidObject("hash function 2 must return bigint")
	}
	if !left.Valid() {
		*left, *right = f.args[0], f.args[0]
	}
	return nil
}

// btreeFunction checks a support function of the method btree.
func btreeFunction(f foundFunction, number int, own types.Type, left, right *types.Type) error {
	first := func(oid types.OID) bool { return len(f.args) == 1 && f.args[0].OID == oid }
	switch {
	case number == 5:
		return pgerror.Unsupported("A support function for options of an operator class", "Leave it out.")
	case number == 1 && len(f.args) != 2:
		return invalidObject("btree comparison functions must have two arguments")
	case number == 1 && f.ret.OID != types.OIDInt4:
		return invalidObject("btree comparison functions must return integer")
	case number == 2 && !first(types.OIDInternal):
		return invalidObject("btree sort support functions must accept type \"internal\"")
	case number == 2 && f.ret.OID != types.OIDVoid:
		return invalidObject("btree sort support functions must return void")
	case number == 3 && len(f.args) != 5:
		return invalidObject("btree in_range functions must have five arguments")
	case number == 3 && f.ret.OID != types.OIDBool:
		return invalidObject("btree in_range functions must return boolean")
	case number == 4 && len(f.args) != 1:
		return invalidObject("btree equal image functions must have one argument")
	case number == 4 && f.ret.OID != types.OIDBool:
		return invalidObject("btree equal image functions must return boolean")
	case number == 4 && left.OID != right.OID:
		return invalidObject("btree equal image functions must not be cross-type")
	}
	if left.Valid() {
		return nil
	}
	switch number {
	case 1:
		*left, *right = f.args[0], f.args[1]
	case 3:
		*left, *right = f.args[0], f.args[2]
	}
	return nil
}

// addMembers adds members to a family. Those that a class needs belong to the class of their type, the others to the family alone.
func (r *run) addMembers(ctx context.Context, f foundFamily, method string, all members) error {
	next := r.familyDescriptor(f, method)
	taken := func(kind string, number int, left, right types.OID) error {
		return pgerror.New(pgerror.DuplicateObject, "%s %d(%s,%s) already exists in operator family %q", kind, number,
			r.shownType(types.Type{OID: left, Mod: -1}), r.shownType(types.Type{OID: right, Mod: -1}), f.name)
	}
	for _, m := range all.operators {
		same := func(have catalog.FamilyOperator) bool {
			return have.Strategy == m.Strategy && have.Left == m.Left && have.Right == m.Right
		}
		if slices.ContainsFunc(next.Operators, same) || systemMember(pgdata.AmOps(), "amopstrategy", "amopfamily", "amoplefttype", "amoprighttype", f.oid, m.Strategy, m.Left, m.Right) {
			return taken("operator", m.Strategy, m.Left, m.Right)
		}
		m.Class = r.memberClass(f.oid, m.Left, m.Right, true)
		if err := r.memberOID(ctx, &m.OID); err != nil {
			return err
		}
		next.Operators = append(next.Operators, m)
	}
	for _, m := range all.functions {
		same := func(have catalog.FamilyFunction) bool {
			return have.Number == m.Number && have.Left == m.Left && have.Right == m.Right
		}
		if slices.ContainsFunc(next.Functions, same) || systemMember(pgdata.AmProcs(), "amprocnum", "amprocfamily", "amproclefttype", "amprocrighttype", f.oid, m.Number, m.Left, m.Right) {
			return taken("function", m.Number, m.Left, m.Right)
		}
		m.Class = r.memberClass(f.oid, m.Left, m.Right, m.Number == 1)
		if err := r.memberOID(ctx, &m.OID); err != nil {
			return err
		}
		next.Functions = append(next.Functions, m)
	}
	return r.putFamily(ctx, next)
}

func (r *run) memberOID(ctx context.Context, oid *uint32) error {
	id, err := r.ch.NewID(ctx)
	*oid = uint32(id)
	return err
}

// memberClass returns the class to which a member of a family belongs, 0 if to the family alone: it is optional, or compares values of two types.
func (r *run) memberClass(family, left, right types.OID, needed bool) uint32 {
	if left != right || !needed {
		return 0
	}
	for _, d := range r.r.Operations().Classes() {
		if d.Family == family && d.Type.OID == left {
			return uint32(d.ID)
		}
	}
	return 0
}

// systemMember reports whether a family of PostgreSQL has a member of its own with a number.
func systemMember(t *pgdata.Table, number, family, left, right string, of types.OID, n int, l, r types.OID) bool {
	if of >= types.FirstUserOID {
		return false
	}
	for row := range t.Len() {
		if types.OID(t.Number(row, family)) == of && int(t.Number(row, number)) == n && types.OID(t.Number(row, left)) == l && types.OID(t.Number(row, right)) == r {
			return true
		}
	}
	return false
}

// alterFamily is ALTER OPERATOR FAMILY … ADD and DROP.
func (r *run) alterFamily(ctx context.Context, n *ast.OperatorFamily) error {
	m, err := r.classMethodNamed(n.Method)
	if err != nil {
		return err
	}
	f, err := r.familyNamed(ctx, n.Name, n.Method)
	if err != nil {
		return err
	}
	if !r.access.Superuser() {
		return pgerror.New(pgerror.InsufficientPrivilege, "must be superuser to alter an operator family")
	}
	if n.Action == "DROP" {
		return r.dropMembers(ctx, f, m, n)
	}
	all, err := r.classMembers(ctx, nil, m, n.Items)
	if err != nil {
		return err
	}
	return r.addMembers(ctx, f, n.Method, all)
}

// dividing returns the class of a family by whose function m partitions are divided, 0 if none are.
func (r *run) dividing(family types.OID, m catalog.FamilyFunction) uint32 {
	for _, d := range r.r.Operations().Classes() {
		if d.Family == family && r.r.Operations().HashFunction(d.OID()) == m.Function && r.dividesRows(d) {
			return uint32(d.ID)
		}
	}
	return 0
}

// dividesRows reports whether rows are divided among partitions by a class.
func (r *run) dividesRows(d *catalog.OpClassDescriptor) bool {
	all, err := r.r.Relations(context.Background())
	return err == nil && slices.ContainsFunc(all, func(t *catalog.TableDescriptor) bool {
		return t.Partitioning != nil && slices.ContainsFunc(t.Partitioning.Keys, func(k catalog.IndexColumn) bool { return k.OpClassID == uint32(d.ID) })
	})
}

// dropMembers is ALTER OPERATOR FAMILY … DROP.
func (r *run) dropMembers(ctx context.Context, f foundFamily, m classMethod, n *ast.OperatorFamily) error {
	next := r.familyDescriptor(f, n.Method)
	for i := range n.Items {
		it := &n.Items[i]
		number, err := memberNumber(it, m)
		if err != nil {
			return err
		}
		left, right, err := r.memberTypes(it)
		if err != nil {
			return err
		}
		before := len(next.Operators) + len(next.Functions)
		class := uint32(0)
		if it.Kind == "OPERATOR" {
			next.Operators = slices.DeleteFunc(next.Operators, func(m catalog.FamilyOperator) bool {
				found := m.Strategy == number && m.Left == left.OID && m.Right == right.OID
				if found {
					class = m.Class
				}
				return found
			})
		} else {
			next.Functions = slices.DeleteFunc(next.Functions, func(m catalog.FamilyFunction) bool {
				found := m.Number == number && m.Left == left.OID && m.Right == right.OID
				if found {
					if class = m.Class; class == 0 {
						class = r.dividing(f.oid, m)
					}
				}
				return found
			})
		}
		kind := strings.ToLower(it.Kind)
		if len(next.Operators)+len(next.Functions) == before {
			return pgerror.New(pgerror.UndefinedObject, "%s %d(%s,%s) does not exist in operator family %q", kind, number, builtin.TypeName(left), builtin.TypeName(right), f.name)
		}
		if d := r.r.Operations().Class(types.OID(class)); class != 0 && d != nil {
			shown := "operator class " + pgcatalog.ClassName(r.r, d) + " for access method " + d.Method
			what := kind + " " + strconv.Itoa(number) + " (" + r.shownType(left) + ", " + r.shownType(right) + ") of operator family " + f.name + " for access method " + n.Method
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop %s because %s requires it", what, shown).WithHint("You can drop " + shown + " instead.")
		}
	}
	return r.putFamily(ctx, next)
}
