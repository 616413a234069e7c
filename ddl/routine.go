package ddl

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// duplicateFunction is PostgreSQL's SQLSTATE for a routine that exists already.
const duplicateFunction pgerror.Code = "42723"

func invalidFunction(format string, args ...any) *pgerror.Error {
	return pgerror.New(pgerror.InvalidFunctionDefinition, format, args...)
}

// createRoutine is CREATE FUNCTION and CREATE PROCEDURE.
func (r *run) createRoutine(ctx context.Context, n *ast.CreateFunction) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.routineSchema(ctx, name)
	if err != nil {
		return err
	}
	d := &catalog.RoutineDescriptor{
		Kind: builtin.FunctionRoutine, Schema: schema, Name: name.Name, Volatility: builtin.Volatile, Parallel: 'u', Owned: catalog.Owned{Owner: r.User},
	}
	if n.Procedure {
		d.Kind = builtin.ProcedureRoutine
	}
	o, err := r.routineOptions(d, n.Options, true)
	if err != nil {
		return err
	}
	if err := r.routineLanguage(d, n, o); err != nil {
		return err
	}
	if err := r.routineParams(ctx, d, n); err != nil {
		return err
	}
	if err := o.apply(d); err != nil {
		return err
	}
	if err := r.replaceable(d, n.OrReplace); err != nil {
		return err
	}
	if err := r.requireNoIndexCalls(ctx, d); err != nil {
		return err
	}
	if n.Return != nil || n.Atomic { // Such a body cannot call the routine itself.
		if err := r.standardBody(ctx, d, n); err != nil {
			return err
		}
		return r.putRoutine(ctx, d)
	}
	d.Body = o.body[0]
	if err := r.putRoutine(ctx, d); err != nil {
		return err
	}
	switch d.Language {
	case "plpgsql":
		return r.checkProcedural(ctx, d, o)
	case "internal":
		return r.checkInternal(d)
	}
	return r.checkSQL(ctx, d, o)
}

// routineSchema returns the schema in which a routine is created, and checks that the user may.
func (r *run) routineSchema(ctx context.Context, name ast.TableName) (string, error) {
	schema, err := r.permanentSchema(ctx, name)
	if err != nil {
		return "", err
	}
	return schema, r.mayCreateIn(schema)
}

func (r *run) putRoutine(ctx context.Context, d *catalog.RoutineDescriptor) error {
	if err := r.ch.PutRoutine(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// routineLanguage takes the language, and refuses those that percodb does not have.
func (r *run) routineLanguage(d *catalog.RoutineDescriptor, n *ast.CreateFunction, o *routineOptions) error {
	standard := n.Return != nil || n.Atomic
	switch {
	case o.body == nil && !standard:
		return invalidFunction("no function body specified")
	case o.body != nil && standard:
		return invalidFunction("duplicate function body specified")
	case o.language == "" && !standard:
		return invalidFunction("no language specified")
	case o.language == "":
		o.language = "sql"
	}
	d.Language = o.language
	switch {
	case (d.Language == "c" || d.Language == "internal") && !r.access.Superuser():
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for language %s", d.Language)
	case d.Language == "c":
		return pgerror.Unsupported("LANGUAGE "+d.Language, "Write the routine in SQL or PL/pgSQL.").At(n.Position())
	case d.Language != "sql" && d.Language != "plpgsql" && d.Language != "internal":
		return pgerror.New(pgerror.UndefinedObject, "language %q does not exist", d.Language)
	case standard && d.Language != "sql":
		return invalidFunction("inline SQL function body only valid for language SQL")
	case len(o.body) > 1:
		return invalidFunction("only one AS item needed for language %q", d.Language)
	}
	if d.Language != "internal" && r.access.Object(acl.Language, d.Language, acl.Usage) == 0 {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for language %s", d.Language)
	}
	return nil
}

// replaceable gives the routine the number, owner and privileges of the one that it replaces, or a number of its own.
func (r *run) replaceable(d *catalog.RoutineDescriptor, orReplace bool) error {
	old := r.r.Routines().Find(d.Schema, d.Name, d.InputTypes())
	if old == nil {
		id, err := r.ch.NewID(context.Background())
		if err != nil {
			return err
		}
		d.ID = id
		d.ACL, err = r.access.Grants.Initial(r.access.Roles, r.User, acl.Function, r.schemaID(d.Schema))
		return err
	}
	drop := "Use DROP " + strings.ToUpper(old.Kind.String()) + " " + r.routineSignature(old) + " first."
	switch {
	case !orReplace:
		return pgerror.New(duplicateFunction, "function %q already exists with same argument types", d.Name)
	case !r.access.Owns(old.OwnerOID()):
		return mustBeOwner(old.Kind.String(), d.Name)
	case old.Kind != d.Kind:
		kind := old.Kind.String()
		if old.Kind == builtin.AggregateRoutine {
			kind = "aggregate function"
		}
		return pgerror.New(pgerror.WrongObjectType, "cannot change routine kind").WithDetail("%q is %s %s.", d.Name, article(kind), kind)
	case old.Ret.OID != d.Ret.OID || old.Set != d.Set:
		if d.Kind == builtin.ProcedureRoutine {
			return invalidFunction("cannot change whether a procedure has output parameters").WithHint(drop)
		}
		return invalidFunction("cannot change return type of existing function").WithHint(drop)
	case d.Ret.OID == types.OIDRecord && !sameColumns(old, d):
		return invalidFunction("cannot change return type of existing function").
			WithDetail("Row type defined by OUT parameters is different.").WithHint(drop)
	}
	before, after := inputs(old), inputs(d)
	for i := range before {
		if before[i].Name != "" && before[i].Name != after[i].Name {
			return invalidFunction("cannot change name of input parameter %q", before[i].Name).WithHint(drop)
		}
	}
	for i := range before {
		if before[i].Default != "" && after[i].Default == "" {
			return invalidFunction("cannot remove parameter defaults from existing function").WithHint(drop)
		}
	}
	d.ID, d.Owned, d.Comment = old.ID, old.Owned, old.Comment
	return nil
}

func inputs(d *catalog.RoutineDescriptor) []builtin.RoutineParam {
	return (&builtin.Routine{Params: d.Params}).Inputs()
}

// requireNoIndexCalls fails if a routine that is about to be replaced computes keys of an index: entries are found by their keys, which
// would be others then.
func (r *run) requireNoIndexCalls(ctx context.Context, d *catalog.RoutineDescriptor) error {
	old := r.r.Routines().ByOID(d.OID())
	if old == nil {
		return nil
	}
	found, err := r.routineUses(ctx, []*catalog.RoutineDescriptor{old})
	if err != nil {
		return err
	}
	for _, line := range found.lines {
		if index, _, ok := strings.Cut(line, " depends on "); ok && strings.HasPrefix(line, "index ") {
			return pgerror.Unsupported("Replacing a function that computes keys of an index", "Drop "+index+" first, and create it again.")
		}
	}
	return nil
}

// sameColumns reports whether the records that two routines return have the same columns.
func sameColumns(a, b *catalog.RoutineDescriptor) bool {
	columns := func(d *catalog.RoutineDescriptor) []builtin.SetColumn {
		return (&builtin.Routine{Params: d.Params, Ret: d.Ret}).Columns()
	}
	return slices.EqualFunc(columns(a), columns(b), func(x, y builtin.SetColumn) bool { return x.Name == y.Name && x.Type.OID == y.Type.OID })
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

// routineSignature returns a routine's name and argument types as messages have them, with the schema where the path does not find it.
func (r *run) routineSignature(d *catalog.RoutineDescriptor) string {
	return builtin.RoutineSignature(r.routineName(d), d.InputTypes())
}

func (r *run) routineName(d *catalog.RoutineDescriptor) string {
	for _, schema := range r.path {
		if schema == d.Schema {
			return ast.QuoteIdent(d.Name)
		}
		if r.r.Routines().Find(schema, d.Name, d.InputTypes()) != nil {
			break
		}
	}
	return ast.QuoteIdent(d.Schema) + "." + ast.QuoteIdent(d.Name)
}

// routineOptions are the options of CREATE and ALTER FUNCTION that are given.
type routineOptions struct {
	body     []string
	bodyAt   int // the position of the first character of the body, 0: it is written otherwise
	language string
	cost     *float64
	rows     *float64
	changes  []func(*catalog.RoutineDescriptor)
}

// apply sets the options on a descriptor.
func (o *routineOptions) apply(d *catalog.RoutineDescriptor) error {
	for _, change := range o.changes {
		change(d)
	}
	if d.Cost == 0 {
		d.Cost = 100
	}
	if d.Set && d.Rows == 0 {
		d.Rows = 1000
	}
	if o.cost != nil {
		if d.Cost = *o.cost; d.Cost <= 0 {
			return pgerror.New(pgerror.InvalidParameterValue, "COST must be positive")
		}
	}
	if o.rows != nil {
		switch d.Rows = *o.rows; {
		case d.Rows <= 0:
			return pgerror.New(pgerror.InvalidParameterValue, "ROWS must be positive")
		case !d.Set:
			return pgerror.New(pgerror.InvalidParameterValue, "ROWS is not applicable when function does not return a set")
		}
	}
	return nil
}

// optionGroups name what may be given once.
var optionGroups = map[string]string{
	"IMMUTABLE": "volatility", "STABLE": "volatility", "VOLATILE": "volatility", "STRICT": "null", "CALLED ON NULL INPUT": "null",
	"SECURITY DEFINER": "security", "SECURITY INVOKER": "security", "LEAKPROOF": "leakproof", "NOT LEAKPROOF": "leakproof",
}

// routineOptions reads the options of a statement.
func (r *run) routineOptions(d *catalog.RoutineDescriptor, list []ast.FunctionOption, create bool) (*routineOptions, error) {
	o := &routineOptions{}
	given := map[string]bool{}
	for i := range list {
		opt := &list[i]
		group := optionGroups[opt.Kind]
		if group == "" {
			group = opt.Kind
		}
		if given[group] && opt.Kind != "SET" {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(opt.Position())
		}
		given[group] = true
		if d.Kind == builtin.ProcedureRoutine && !forProcedures(opt.Kind) {
			return nil, invalidFunction("invalid attribute in procedure definition").At(opt.Position())
		}
		if err := r.routineOption(o, opt); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// forProcedures reports whether procedures have an option.
func forProcedures(kind string) bool {
	switch kind {
	case "AS", "LANGUAGE", "TRANSFORM", "SECURITY DEFINER", "SECURITY INVOKER", "SET":
		return true
	}
	return false
}

func (r *run) routineOption(o *routineOptions, opt *ast.FunctionOption) error {
	set := func(f func(d *catalog.RoutineDescriptor)) { o.changes = append(o.changes, f) }
	switch opt.Kind {
	case "AS":
		o.body, o.bodyAt = opt.Values, int(opt.ValueAt)
	case "LANGUAGE":
		o.language = strings.ToLower(opt.Values[0])
	case "IMMUTABLE":
		set(func(d *catalog.RoutineDescriptor) { d.Volatility = builtin.Immutable })
	case "STABLE":
		set(func(d *catalog.RoutineDescriptor) { d.Volatility = builtin.Stable })
	case "VOLATILE":
		set(func(d *catalog.RoutineDescriptor) { d.Volatility = builtin.Volatile })
	case "STRICT", "CALLED ON NULL INPUT":
		set(func(d *catalog.RoutineDescriptor) { d.Strict = opt.Kind == "STRICT" })
	case "SECURITY DEFINER", "SECURITY INVOKER":
		set(func(d *catalog.RoutineDescriptor) { d.SecurityDefiner = opt.Kind == "SECURITY DEFINER" })
	case "LEAKPROOF", "NOT LEAKPROOF":
		if opt.Kind == "LEAKPROOF" && !r.access.Superuser() {
			return pgerror.New(pgerror.InsufficientPrivilege, "only superuser can define a leakproof function")
		}
		set(func(d *catalog.RoutineDescriptor) { d.Leakproof = opt.Kind == "LEAKPROOF" })
	case "PARALLEL":
		level, ok := map[string]byte{"safe": 's', "restricted": 'r', "unsafe": 'u'}[opt.Values[0]]
		if !ok {
			return pgerror.New(pgerror.SyntaxError, "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE")
		}
		set(func(d *catalog.RoutineDescriptor) { d.Parallel = level })
	case "COST", "ROWS":
		n, err := strconv.ParseFloat(opt.Values[0], 32)
		if err != nil {
			return pgerror.New(pgerror.InvalidParameterValue, "%s must be positive", opt.Kind)
		}
		if opt.Kind == "COST" {
			o.cost = &n
		} else {
			o.rows = &n
		}
	case "SET":
		return r.routineSetting(o, opt.Set)
	case "TRANSFORM":
		return pgerror.Unsupported("TRANSFORM", "percodb has no transforms.").At(opt.Position())
	case "WINDOW":
		return pgerror.Unsupported("WINDOW", "Window functions are written in C only. Use an aggregate with OVER.").At(opt.Position())
	case "SUPPORT":
		if !r.access.Superuser() {
			return pgerror.New(pgerror.InsufficientPrivilege, "must be superuser to specify a support function")
		}
		return pgerror.Unsupported("SUPPORT", "Support functions are written in C only.").At(opt.Position())
	}
	return nil
}

// routineSetting is SET or RESET of a parameter while the routine runs.
func (r *run) routineSetting(o *routineOptions, st *ast.Set) error {
	name := strings.ToLower(st.Name)
	if st.Default && name == "all" {
		o.changes = append(o.changes, func(d *catalog.RoutineDescriptor) { d.Config = nil })
		return nil
	}
	value := ""
	if !st.Default {
		values := st.Values
		if name == "search_path" {
			values = quoteNames(values)
		}
		value = strings.Join(values, ", ")
	}
	title, err := r.CheckSetting(name, value)
	if err != nil && (!st.Default || isUnknownSetting(err)) {
		return err
	}
	if err := r.requireParameter(name); err != nil {
		return err
	}
	o.changes = append(o.changes, func(d *catalog.RoutineDescriptor) {
		d.Config = slices.DeleteFunc(slices.Clone(d.Config), func(c string) bool {
			have, _, _ := strings.Cut(c, "=")
			return strings.EqualFold(have, name)
		})
		if !st.Default {
			d.Config = append(d.Config, title+"="+value)
		}
	})
	return nil
}

// checkSQL checks a body in SQL.
func (r *run) checkSQL(ctx context.Context, d *catalog.RoutineDescriptor, o *routineOptions) error {
	d = r.r.Routines().ByOID(d.OID())
	if err := planner.CheckRoutineTypes(d, "SQL"); err != nil {
		return err
	}
	if !r.checksBodies() {
		return nil
	}
	_, err := planner.CheckRoutine(ctx, d, r.r, r.Env)
	return inBody(err, o.bodyAt)
}

// checksBodies reports whether check_function_bodies is on.
func (r *run) checksBodies() bool {
	if r.Env == nil || r.Env.Session == nil {
		return true
	}
	value, err := r.Env.Session.Setting("check_function_bodies")
	return err != nil || value == "on"
}

// inBody moves the position of an error in a body to that in the statement, if the body begins at the position at there.
func inBody(err error, at int) error {
	if at == 0 {
		return unplaced(err)
	}
	return shifted(err, at-1)
}

// standardBody checks a body in SQL's standard form, and stores it with its names qualified.
func (r *run) standardBody(ctx context.Context, d *catalog.RoutineDescriptor, n *ast.CreateFunction) error {
	if err := planner.CheckRoutineTypes(d, "SQL"); err != nil {
		return err
	}
	for i := range d.Params {
		if d.Params[i].In() && d.Params[i].Type.IsPolymorphic() {
			return invalidFunction("SQL function with unquoted function body cannot have polymorphic arguments")
		}
	}
	d.Standard = true
	d.Body = standardText(n)
	statements, err := planner.CheckRoutine(ctx, d, r.r, r.Env)
	if err != nil {
		return unplaced(err)
	}
	qualify := func(name *ast.TableName) {
		if t, e := r.find(ctx, *name); e == nil && t != nil && t.Schema != catalog.TemporarySchema {
			name.Schema = t.Schema
		}
	}
	for _, stmt := range statements {
		ast.InspectStatement(stmt, ast.Visitor{Table: func(ref *ast.TableRef) { qualify(&ref.Name) }, Target: qualify, Expr: r.pinNames})
	}
	d.Body = standardBody(n, statements)
	return nil
}

// standardText is the body as it is written.
func standardText(n *ast.CreateFunction) string {
	if n.Return != nil {
		return "RETURN " + n.Return.String()
	}
	return atomicText(n.Body)
}

// standardBody is the body of statements whose names are qualified.
func standardBody(n *ast.CreateFunction, statements []ast.Statement) string {
	if n.Return == nil {
		for i, s := range n.Body {
			if _, returns := s.(*ast.ReturnStatement); returns {
				statements[i] = &ast.ReturnStatement{Value: statements[i].(*ast.Query).Body.(*ast.Select).Columns[0].Expr}
			}
		}
		return atomicText(statements)
	}
	q := statements[0].(*ast.Query)
	return "RETURN " + q.Body.(*ast.Select).Columns[0].Expr.String()
}

func atomicText(statements []ast.Statement) string {
	var b strings.Builder
	b.WriteString("BEGIN ATOMIC\n")
	for _, s := range statements {
		b.WriteString(" " + s.String() + ";\n")
	}
	b.WriteString("END")
	return b.String()
}

// checkProcedural checks a body in PL/pgSQL.
func (r *run) checkProcedural(ctx context.Context, d *catalog.RoutineDescriptor, o *routineOptions) error {
	d = r.r.Routines().ByOID(d.OID())
	if err := planner.CheckRoutineTypes(d, "PL/pgSQL"); err != nil {
		return err
	}
	if r.CheckProcedural == nil || !r.checksBodies() {
		return nil
	}
	warnings, err := r.CheckProcedural(ctx, d, r.r)
	for _, w := range warnings {
		var placed *pgerror.Error
		if errors.As(inBody(w, o.bodyAt), &placed) {
			r.Report.Notice(placed)
		}
	}
	return inBody(err, o.bodyAt)
}
