package ddl

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// CREATE, ALTER and COMMENT ON OPERATOR. DROP is in operationdrop.go.

// operatorItems are the attributes of CREATE OPERATOR by their names.
type operatorItems map[string]*ast.DefItem

// operatorWords are the attributes that there are; obsolete ones stand for others.
var operatorWords = map[string]string{
	"leftarg": "leftarg", "rightarg": "rightarg", "function": "function", "procedure": "function", "commutator": "commutator", "negator": "negator",
	"restrict": "restrict", "join": "join", "hashes": "hashes", "merges": "merges", "sort1": "merges", "sort2": "merges", "ltcmp": "merges", "gtcmp": "merges",
}

// createOperator is CREATE OPERATOR.
func (r *run) createOperator(ctx context.Context, n *ast.Define) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.operationSchema(ctx, name)
	if err != nil {
		return err
	}
	items := operatorItems{}
	for i := range n.Items {
		it := &n.Items[i]
		word, ok := operatorWords[it.Name]
		switch {
		case !ok:
			r.warn(pgerror.New(pgerror.SyntaxError, "operator attribute %q not recognized", it.Name))
			continue
		case word == "merges" && it.Name != word:
			it = &ast.DefItem{Pos: it.Pos, Name: word}
		}
		items[word] = it
	}
	d := &catalog.OperatorDescriptor{Schema: schema, Name: name.Name, Owned: catalog.Owned{Owner: r.User}}
	f, err := r.operatorFunction(ctx, d, items)
	if err != nil {
		return err
	}
	d.Merges, d.Hashes = items["merges"] != nil && itemTrue(items["merges"]), items["hashes"] != nil && itemTrue(items["hashes"])
	if err := r.estimators(ctx, d, items); err != nil {
		return err
	}
	if err := requireOperator(d, items); err != nil {
		return err
	}
	d.Function, d.Ret = f.oid, f.ret
	if f.ret.OID != types.OIDBool {
		if err := requireBoolean(d, items); err != nil {
			return err
		}
	}
	return r.addOperator(ctx, d, items)
}

// warn reports a message of the severity WARNING.
func (r *run) warn(e *pgerror.Error) {
	e.Severity = "WARNING"
	r.Report.Notice(e)
}

// operationSchema returns the schema in which an operator, a class or a family is created, and checks that the user may.
func (r *run) operationSchema(ctx context.Context, name ast.TableName) (string, error) {
	schema, err := r.routineSchema(ctx, name)
	return schema, unplaced(err)
}

// operatorFunction reads the operands, and finds the function that evaluates the operator.
func (r *run) operatorFunction(ctx context.Context, d *catalog.OperatorDescriptor, items operatorItems) (f foundFunction, err error) {
	for _, word := range []string{"leftarg", "rightarg"} {
		if it := items[word]; it != nil && it.Value != nil && it.Value.Type != nil && it.Value.Type.SetOf {
			return f, invalidFunction("SETOF type not allowed for operator argument")
		}
	}
	switch {
	case items["function"] == nil:
		return f, invalidFunction("operator function must be specified")
	case items["leftarg"] == nil && items["rightarg"] == nil:
		return f, invalidFunction("operator argument types must be specified")
	case items["rightarg"] == nil:
		return f, invalidFunction("operator right argument type must be specified").WithDetail("Postfix operators are not supported.")
	}
	var args []types.Type
	if it := items["leftarg"]; it != nil {
		if d.Left, err = r.itemType(ctx, it); err != nil {
			return f, err
		}
		args = append(args, d.Left)
	}
	if d.Right, err = r.itemType(ctx, items["rightarg"]); err != nil {
		return f, err
	}
	if f, err = r.exactFunction(ctx, itemPath(items["function"]), append(args, d.Right)); err != nil {
		return f, err
	}
	if err := f.callable("An operator"); err != nil {
		return f, err
	}
	if f.set {
		return f, pgerror.Unsupported("An operator whose function returns a set", "Call the function in FROM.")
	}
	return f, nil
}

// requireOperator checks what only operators with two operands have.
func requireOperator(d *catalog.OperatorDescriptor, items operatorItems) error {
	if d.Left.Valid() {
		return nil
	}
	switch {
	case items["commutator"] != nil:
		return invalidFunction("only binary operators can have commutators")
	case items["join"] != nil:
		return invalidFunction("only binary operators can have join selectivity")
	case d.Merges:
		return invalidFunction("only binary operators can merge join")
	case d.Hashes:
		return invalidFunction("only binary operators can hash")
	}
	return nil
}

// requireBoolean checks what only operators that yield boolean have.
func requireBoolean(d *catalog.OperatorDescriptor, items operatorItems) error {
	switch {
	case items["negator"] != nil:
		return invalidFunction("only boolean operators can have negators")
	case d.Restrict != 0:
		return invalidFunction("only boolean operators can have restriction selectivity")
	case d.Join != 0:
		return invalidFunction("only boolean operators can have join selectivity")
	case d.Merges:
		return invalidFunction("only boolean operators can merge join")
	case d.Hashes:
		return invalidFunction("only boolean operators can hash")
	}
	return nil
}

// addOperator stores a new operator, with its links to its commutator and its negator, or completes its shell.
func (r *run) addOperator(ctx context.Context, d *catalog.OperatorDescriptor, items operatorItems) error {
	if old := r.r.Operations().FindOperator(d.Schema, d.Name, d.Left, d.Right); old != nil {
		if !old.Shell() {
			return pgerror.New(duplicateFunction, "operator %s already exists", d.Name)
		}
		if !r.access.Owns(old.OwnerOID()) {
			return mustBeOwner("operator", d.Name)
		}
		d.ID, d.Comment, d.Commutator, d.Negator = old.ID, old.Comment, old.Commutator, old.Negator
	}
	var err error
	own := false // it is its own commutator
	if it := items["commutator"]; it != nil {
		if d.Commutator, own, err = r.linkedOperator(ctx, d, it, d.Right, d.Left); err != nil {
			return err
		}
	}
	if it := items["negator"]; it != nil {
		self := false
		if d.Negator, self, err = r.linkedOperator(ctx, d, it, d.Left, d.Right); err != nil {
			return err
		}
		if self {
			return invalidFunction("operator cannot be its own negator or sort operator")
		}
	}
	if d.ID == 0 {
		if d.ID, err = r.ch.NewID(ctx); err != nil {
			return err
		}
	}
	if own {
		d.Commutator = d.OID()
	}
	if err := r.ch.PutOperator(ctx, d); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	if err := r.linkBack(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// linkedOperator returns the operator that a definition names as the commutator or negator of d: one that exists, a new shell, or d itself.
func (r *run) linkedOperator(ctx context.Context, d *catalog.OperatorDescriptor, it *ast.DefItem, left, right types.Type) (oid types.OID, self bool, err error) {
	name := pathName(it.Pos, operatorOfItem(it))
	if name.Schema != "" {
		if err := r.requireSchemaOf(ctx, name); err != nil {
			return 0, false, err
		}
	}
	if oid := pgcatalog.FindOperator(r.r, name.Schema, name.Name, left, right); oid != 0 && oid != d.OID() {
		return oid, false, nil
	}
	schema, err := r.operationSchema(ctx, name)
	if err != nil {
		return 0, false, err
	}
	if schema == d.Schema && name.Name == d.Name && left.OID == d.Left.OID && right.OID == d.Right.OID {
		return 0, true, nil
	}
	shell := &catalog.OperatorDescriptor{Schema: schema, Name: name.Name, Left: left, Right: right, Owned: catalog.Owned{Owner: r.User}}
	if shell.ID, err = r.ch.NewID(ctx); err != nil {
		return 0, false, err
	}
	if err := r.ch.PutOperator(ctx, shell); err != nil {
		return 0, false, err
	}
	return shell.OID(), false, r.look(ctx)
}

// operatorOfItem is the name of an operator in a definition, the symbol last.
func operatorOfItem(it *ast.DefItem) []string {
	v := it.Value
	if v == nil || v.Operator == "" {
		return itemPath(it)
	}
	if v.Qualified {
		return []string{catalog.SystemSchema, v.Operator}
	}
	schema, symbol := planner.SplitOperator(v.Operator)
	if schema == "" {
		return []string{symbol}
	}
	return []string{schema, symbol}
}

// linkBack gives the commutator and the negator of an operator the links back to it.
func (r *run) linkBack(ctx context.Context, d *catalog.OperatorDescriptor) error {
	set := func(oid types.OID, link func(*catalog.OperatorDescriptor) *types.OID) error {
		other := r.r.Operations().Operator(oid)
		if other == nil || oid == d.OID() {
			return nil // Those of PostgreSQL stay as they are.
		}
		next := other.Clone()
		if at := link(next); *at != d.OID() {
			*at = d.OID()
			return r.ch.PutOperator(ctx, next)
		}
		return nil
	}
	if err := set(d.Commutator, func(o *catalog.OperatorDescriptor) *types.OID { return &o.Commutator }); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	return set(d.Negator, func(o *catalog.OperatorDescriptor) *types.OID { return &o.Negator })
}

// The arguments of estimator functions.
var (
	restrictArgs = []types.OID{types.OIDInternal, types.OIDOid, types.OIDInternal, types.OIDInt4}
	joinArgs     = []types.OID{types.OIDInternal, types.OIDOid, types.OIDInternal, types.OIDInt2, types.OIDInternal}
)

// estimators reads RESTRICT and JOIN, which are shown to clients and have no effect. An item without value, or NONE, removes one.
func (r *run) estimators(ctx context.Context, d *catalog.OperatorDescriptor, items operatorItems) (err error) {
	if it := items["restrict"]; it != nil {
		if d.Restrict, err = r.estimator(ctx, it, "restriction", restrictArgs); err != nil {
			return err
		}
	}
	if it := items["join"]; it != nil {
		if d.Join, err = r.estimator(ctx, it, "join", joinArgs); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) estimator(ctx context.Context, it *ast.DefItem, kind string, args []types.OID) (types.OID, error) {
	if it.Value == nil || it.Value.Word == "NONE" {
		return 0, nil
	}
	path := itemPath(it)
	name := pathName(it.Pos, path)
	if name.Schema != "" {
		if err := r.requireSchemaOf(ctx, name); err != nil {
			return 0, err
		}
	}
	if name.Schema == "" || name.Schema == catalog.SystemSchema {
		for _, p := range builtin.ProcsNamed(name.Name) {
			if p.Schema() != catalog.SystemSchema || !slices.Equal(p.Args, args) {
				continue
			}
			if p.Ret != types.OIDFloat8 {
				return 0, invalidFunction("%s estimator function %s must return type %s", kind, strings.Join(path, "."), "double precision")
			}
			return p.OID, nil
		}
	}
	list := make([]types.Type, len(args))
	for i, oid := range args {
		list[i] = types.Type{OID: oid, Mod: -1}
	}
	return 0, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", builtin.CallSignature(strings.Join(path, "."), list))
}

// foundFunction is a function that an operator, a cast or an operator class names.
type foundFunction struct {
	oid     types.OID
	routine *catalog.RoutineDescriptor // nil: one of PostgreSQL or an extension
	args    []types.Type
	ret     types.Type
	set     bool
	kind    builtin.RoutineKind
}

// exactFunction finds the function with a name and exactly the given arguments, which the user may call.
func (r *run) exactFunction(ctx context.Context, path []string, args []types.Type) (f foundFunction, err error) {
	name := pathName(0, path)
	schemas := r.path
	if name.Schema != "" {
		if err := r.requireSchemaOf(ctx, name); err != nil {
			return f, err
		}
		schemas = []string{name.Schema}
	}
	schemas = catalog.Path(catalog.SearchPath(r.r, schemas))
	for _, schema := range schemas {
		if name.Schema != "" && schema != name.Schema {
			continue
		}
		if d := r.r.Routines().Find(schema, name.Name, args); d != nil {
			f = foundFunction{oid: d.OID(), routine: d, args: args, ret: d.Ret, set: d.Set, kind: d.Kind}
			return f, planner.RoutineDenied(r.access, d)
		}
		if f, ok := r.systemFunction(schema, name.Name, args); ok {
			return f, r.mayCallSystem(f)
		}
	}
	return f, pgerror.New(pgerror.UndefinedFunction, "function %s does not exist", builtin.CallSignature(strings.Join(path, "."), args))
}

// systemFunction finds a function of PostgreSQL, or of an extension in the schema.
func (r *run) systemFunction(schema, name string, args []types.Type) (f foundFunction, ok bool) {
	procs := builtin.ProcsNamed(name)
	if schema != catalog.SystemSchema {
		procs = nil
		for _, d := range r.r.Extensions().All() {
			if e := d.Extension(); e != nil && d.Schema == schema {
				procs = append(procs, e.Procs()...)
			}
		}
	}
	for _, p := range procs {
		same := func(oid types.OID, t types.Type) bool { return oid == t.OID }
		if p.Name == name && slices.EqualFunc(p.Args, args, same) && (schema != catalog.SystemSchema || p.Schema() == schema) {
			return foundFunction{oid: p.OID, args: args, ret: types.Type{OID: p.Ret, Mod: -1}, set: p.Value("proretset") == "t", kind: builtin.RoutineKind(p.Kind)}, true
		}
	}
	return f, false
}

// mayCallSystem fails if the user may not execute a function of PostgreSQL, or it is one that no statement can call.
func (r *run) mayCallSystem(f foundFunction) error {
	p := builtin.ProcByOID(f.oid)
	if r.access.Object(acl.Function, p.Signature, acl.Execute) == 0 {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for function %s", p.Name)
	}
	return nil
}

// callable fails for a function that is no function of values: an operator or a cast cannot be evaluated by it.
func (f foundFunction) callable(what string) error {
	if f.routine == nil && builtin.OverloadByOID(f.oid) == nil {
		return pgerror.Unsupported(what+" by function "+builtin.ProcByOID(f.oid).Name, "Write a function in SQL that calls it.")
	}
	return nil
}

// requireSchemaOf fails unless the schema of a name exists and the user may use it.
func (r *run) requireSchemaOf(ctx context.Context, name ast.TableName) error {
	ok, err := r.r.SchemaExists(ctx, name.Schema)
	if err != nil {
		return err
	}
	if !ok {
		return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Schema)
	}
	return unplaced(r.useSchema(name))
}

// absentOperator is the error for an operator that does not exist. notice is what IF EXISTS reports.
type absentOperator struct {
	err    *pgerror.Error
	notice string
}

func (e *absentOperator) Error() string { return e.err.Error() }

// findOperator finds an operator by its name and operands: one of a user, or the OID of one of PostgreSQL.
//
// Errors: *absentOperator.
func (r *run) findOperator(ctx context.Context, o *ast.Object) (*catalog.OperatorDescriptor, types.OID, error) {
	name := nameOf(o)
	var noSchema *absentOperator
	if name.Schema != "" {
		if err := absentBy(r.requireSchemaOf(ctx, name)); err != nil && !errors.As(err, &noSchema) {
			return nil, 0, err
		}
	}
	var operands [2]types.Type
	for i, t := range o.Types {
		if t == nil {
			continue
		}
		typ, err := planner.ResolveType(t, r.r)
		if err != nil {
			return nil, 0, absentBy(unplaced(err))
		}
		operands[i] = typ.Base()
	}
	left, right := operands[0], operands[1]
	full := strings.Join(o.Name, ".")
	oid := types.OID(0)
	if right.Valid() {
		oid = pgcatalog.FindOperator(r.r, name.Schema, name.Name, left, right)
	}
	if oid == 0 {
		signature := full + " " + builtin.TypeName(right)
		if left.Valid() {
			signature = builtin.TypeName(left) + " " + full
			if right.Valid() {
				signature += " " + builtin.TypeName(right)
			}
		}
		absent := &absentOperator{pgerror.New(pgerror.UndefinedFunction, "operator does not exist: %s", signature), "operator " + full + " does not exist, skipping"}
		switch {
		case noSchema != nil:
			absent.notice = noSchema.notice
		case !right.Valid():
			absent.err = pgerror.New(pgerror.SyntaxError, "postfix operators are not supported")
		}
		return nil, 0, absent
	}
	return r.r.Operations().Operator(oid), oid, nil
}

// absentBy makes an absentOperator of the error of a schema or a type that does not exist; other errors stay.
func absentBy(err error) error {
	if pg, ok := err.(*pgerror.Error); ok && (pg.Code == pgerror.InvalidSchemaName || pg.Code == pgerror.UndefinedObject) {
		return &absentOperator{pg, pg.Message + ", skipping"}
	}
	return err
}

// ownedOperator finds an operator that the user may change.
func (r *run) ownedOperator(ctx context.Context, o *ast.Object) (*catalog.OperatorDescriptor, error) {
	d, _, err := r.findOperator(ctx, o)
	if absent, ok := err.(*absentOperator); ok {
		return nil, absent.err
	}
	switch {
	case err != nil:
		return nil, err
	case d == nil && !r.access.Superuser():
		return nil, mustBeOwner("operator", strings.Join(o.Name, "."))
	case d == nil:
		return nil, pgerror.Unsupported("Changing the operator "+strings.Join(o.Name, "."), "It is part of percodb.")
	case !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner("operator", strings.Join(o.Name, "."))
	}
	return d, nil
}

// alterOperator is ALTER OPERATOR.
func (r *run) alterOperator(ctx context.Context, n *ast.AlterObject) error {
	d, err := r.ownedOperator(ctx, &n.Object)
	if err != nil {
		return err
	}
	switch {
	case n.Change.Owner != nil:
		owner, err := r.newOwner(*n.Change.Owner, d.OwnerOID(), d.Schema)
		if err != nil || owner == 0 {
			return err
		}
		next := d.Clone()
		next.Owner = owner
		return r.putOperator(ctx, next)
	case n.Change.Schema != "":
		return r.moveOperator(ctx, d, n.Change.Schema)
	}
	items := operatorItems{}
	for i := range n.Change.Definitions {
		it := &n.Change.Definitions[i]
		switch it.Name {
		case "restrict", "join":
			items[it.Name] = it
		case "leftarg", "rightarg", "function", "procedure", "commutator", "negator", "hashes", "merges":
			return pgerror.New(pgerror.SyntaxError, "operator attribute %q cannot be changed", it.Name)
		default:
			return pgerror.New(pgerror.SyntaxError, "operator attribute %q not recognized", it.Name)
		}
	}
	next := d.Clone()
	if err := r.estimators(ctx, next, items); err != nil {
		return err
	}
	if !d.Left.Valid() && next.Join != 0 {
		return invalidFunction("only binary operators can have join selectivity")
	}
	if d.Ret.OID != types.OIDBool {
		if err := requireBoolean(&catalog.OperatorDescriptor{Restrict: next.Restrict, Join: next.Join}, operatorItems{}); err != nil {
			return err
		}
	}
	return r.putOperator(ctx, next)
}

func (r *run) putOperator(ctx context.Context, d *catalog.OperatorDescriptor) error {
	if err := r.ch.PutOperator(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// newOwner returns the role that is to own an object of a schema; 0 if it does already.
func (r *run) newOwner(to ast.Role, now uint32, schema string) (uint32, error) {
	owner, err := r.roleOID(to)
	if err != nil || owner == now {
		return 0, err
	}
	if _, err := r.memberRole(to); err != nil {
		return 0, err
	}
	return owner, r.ownerMayCreate(owner, schema)
}

// newSchema checks that the user may move an object to a schema; false if it is there already.
func (r *run) newSchema(ctx context.Context, from, to, name string) (bool, error) {
	if err := r.requireSchema(ctx, to, ast.TableName{Schema: to, Name: name}); err != nil {
		return false, unplaced(err)
	}
	if catalog.IsTemporary(to) {
		return false, pgerror.New(pgerror.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
	}
	return from != to, r.mayCreateIn(to)
}

// moveOperator is ALTER OPERATOR … SET SCHEMA. Expressions that are stored name the operator by its new schema.
func (r *run) moveOperator(ctx context.Context, d *catalog.OperatorDescriptor, schema string) error {
	moves, err := r.newSchema(ctx, d.Schema, schema, d.Name)
	if err != nil || !moves {
		return err
	}
	if r.r.Operations().FindOperator(schema, d.Name, d.Left, d.Right) != nil {
		return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint %q", "pg_operator_oprname_l_r_n_index").
			WithDetail("Key (oprname, oprleft, oprright, oprnamespace)=(%s, %d, %d, %d) already exists.", d.Name, d.Left.OID, d.Right.OID, r.schemaID(schema))
	}
	was, is := qualifiedOperator(d.Schema, d.Name), qualifiedOperator(schema, d.Name)
	overloads := 0
	for _, other := range r.r.Operations().Named(d.Name) {
		if other.Schema == d.Schema && !other.Shell() {
			overloads++
		}
	}
	rename := func(e ast.Expr) (bool, error) {
		op := planner.WrittenOperator(e)
		if op == nil || *op != was {
			return false, nil
		}
		if overloads > 1 {
			return false, pgerror.Unsupported("moving one of several operators of a name that stored expressions use",
				"Drop what uses "+d.Name+" first and create it again.")
		}
		*op = is
		return true, nil
	}
	if err := r.rewriteStored(ctx, rename); err != nil {
		return err
	}
	if err := r.rewriteStandard(ctx, rename); err != nil {
		return err
	}
	next := d.Clone()
	next.Schema = schema
	if err := r.putOperator(ctx, next); err != nil {
		return err
	}
	return r.reprintIndexes(ctx, dependency{uses: func(found func()) ast.Visitor {
		return ast.Visitor{Expr: func(e ast.Expr) {
			if op := planner.WrittenOperator(e); op != nil && *op == is {
				found()
			}
		}}
	}, ofType: func(types.Type) bool { return false }})
}

// qualifiedOperator is an operator as stored expressions name it.
func qualifiedOperator(schema, symbol string) string {
	return (&builtin.Operator{Schema: schema, Name: symbol}).Qualified()
}

// commentOperator is COMMENT ON OPERATOR.
func (r *run) commentOperator(ctx context.Context, o *ast.Object, text string) error {
	d, err := r.ownedOperator(ctx, o)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	return r.putOperator(ctx, next)
}
