package planner

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
)

// ruleText writes expressions and queries that were bound verbatim as PostgreSQL prints those of its catalog.
type ruleText struct {
	buf   []byte
	b     *binder
	r     catalog.Resolver // whose search path shortens names
	notes *bindNotes
	names *pgcatalog.Objects

	pretty bool // with those parentheses only that are needed
	wrap   int  // the width beyond which a select list continues in the next line; negative: it does not
	indent int
	flat   bool // in one line
	// levels are the queries around what is being written, outermost first.
	levels []*queryLevel
	// qualify: columns outside of queries have the names of their tables, too.
	qualify bool
	// subject is what the nearest CaseValue stands for.
	subject expr.Scalar
	// routine is the function whose body is written: its arguments are parameters. nil: there is none.
	routine *catalog.RoutineDescriptor
	// failed: there is an expression that cannot be written.
	failed bool
}

func newRuleText(b *binder, r catalog.Resolver, pretty bool) *ruleText {
	return &ruleText{b: b, r: r, notes: b.notes, names: &pgcatalog.Objects{Resolver: func() catalog.Resolver { return r }}, pretty: pretty}
}

func (w *ruleText) str(s string) { w.buf = append(w.buf, s...) }

func (w *ruleText) ident(name string) { w.str(keyword.QuoteIdent(name)) }

// capture returns what f writes.
func (w *ruleText) capture(f func()) string {
	saved := w.buf
	w.buf = nil
	f()
	text := string(w.buf)
	w.buf = saved
	return text
}

// group writes an expression within the parentheses that are not left out but in pretty form.
func (w *ruleText) group(f func()) {
	if !w.pretty {
		w.str("(")
	}
	f()
	if !w.pretty {
		w.str(")")
	}
}

// operand writes a part of parent. implicit tells whether an implicit cast at its top is written.
func (w *ruleText) operand(s expr.Scalar, implicit bool, parent expr.Scalar) {
	parens := w.pretty && !w.isSimple(s, parent)
	if parens {
		w.str("(")
	}
	w.expr(s, implicit)
	if parens {
		w.str(")")
	}
}

func (w *ruleText) list(args []expr.Scalar, implicit bool) {
	for i, a := range args {
		if i > 0 {
			w.str(", ")
		}
		w.expr(a, implicit)
	}
}

// expr writes an expression; implicit: and the implicit casts at its top.
func (w *ruleText) expr(s expr.Scalar, implicit bool) {
	if in, ok := s.(*expr.Input); ok && in.Param > 0 {
		w.parameter(in.Param)
		return
	}
	if w.special(s) {
		return
	}
	switch s := s.(type) {
	case *expr.Column:
		w.column(s)
	case *expr.Const:
		w.constant(s, labelIfNeeded)
	case *expr.Parse:
		if c := w.parsed(s); c != nil {
			w.constant(c, labelIfNeeded)
		} else {
			w.coercion(s.X, s.Typ, s)
		}
	case *expr.Cast:
		w.cast(s, implicit)
	case *expr.Call:
		w.call(s)
	case *expr.CaseValue:
		w.expr(w.subject, implicit)
	case *expr.And:
		w.logical(s.Args, " AND ", s)
	case *expr.Or:
		w.logical(s.Args, " OR ", s)
	case *expr.Not:
		w.group(func() {
			w.str("NOT ")
			w.operand(s.X, false, s)
		})
	default:
		w.test(s)
	}
}

// special writes what has a syntax of its own in the text, and reports whether it did.
func (w *ruleText) special(s expr.Scalar) bool {
	f := w.notes.forms[s]
	switch e := f.e.(type) {
	case *ast.Call:
		_, column := s.(*expr.Column)
		if call, ok := s.(*expr.Call); e.Syntax != ast.PlainCall && w.syntax(e, call, ok) {
			return true
		}
		if column || e.Over != nil {
			w.computedCall(e)
			return true
		}
	case *ast.Star:
		if len(e.Table) > 0 {
			w.str(keyword.QuoteIdent(w.refName(f)) + ".*")
			return true
		}
	case *ast.ColumnRef:
		if rec, ok := s.(*expr.Record); ok && f.column == "" && rec.Names != nil {
			w.str(keyword.QuoteIdent(w.refName(f)) + ".*")
			return true
		}
		_, column := s.(*expr.Column)
		if _, field := s.(*expr.Field); !column && !field && f.column != "" { // A column that a join merges of two.
			w.columnOf(f)
			return true
		}
	case *ast.AtTimeZone:
		if c, ok := s.(*expr.Call); ok {
			w.str("(")
			w.operand(c.Args[1], false, s)
			w.str(" AT TIME ZONE ")
			w.operand(c.Args[0], false, s)
			w.str(")")
			return true
		}
	case *ast.Subscript:
		w.subscripts(e)
		return true
	case *ast.IsTest:
		if c, ok := s.(*expr.Call); ok && strings.HasSuffix(e.What, "NORMALIZED") {
			w.str("(")
			w.operand(c.Args[0], false, s)
			w.str(" IS " + e.What + ")")
			return true
		}
	}
	return false
}

// alone writes an expression that would stand for several columns if it were the row of a table without its type.
func (w *ruleText) alone(s expr.Scalar, implicit bool) {
	w.expr(s, implicit)
	if f := w.notes.forms[s]; f.e != nil && f.column == "" {
		if r, ok := s.(*expr.Record); ok && r.Names != nil {
			w.str("::" + w.typeName(r.Typ))
		}
	}
}

// boundAll returns what expressions of the text were bound to.
func (w *ruleText) boundAll(list []ast.Expr) []expr.Scalar {
	out := make([]expr.Scalar, len(list))
	for i := range list {
		out[i] = w.boundTo(list[i])
	}
	return out
}

func (w *ruleText) boundTo(e ast.Expr) expr.Scalar {
	x, ok := w.notes.bound[e]
	if !ok {
		w.failed = true
		return expr.NewNull(types.TText)
	}
	return x
}

func (w *ruleText) column(c *expr.Column) {
	if f, ok := w.notes.forms[c]; ok {
		w.columnOf(f)
		return
	}
	w.ident(c.Name[strings.LastIndexByte(c.Name, '.')+1:])
}

// columnOf writes the name of a column, with that of its table within queries.
func (w *ruleText) columnOf(f form) {
	if f.alias != "" && (w.qualify || len(w.levels) > 0) {
		w.str(keyword.QuoteIdent(w.refName(f)) + ".")
	}
	if f.stmt == nil && f.alias == "" && f.column == valueName {
		w.str("VALUE")
		return
	}
	w.ident(f.column)
}

// cast writes a cast, COLLATE, or what is cast.
func (w *ruleText) cast(s *expr.Cast, implicit bool) {
	switch {
	case s.Collate != 0:
		w.group(func() {
			w.operand(s.X, implicit, s)
			w.str(" COLLATE " + w.collation(s.Typ))
		})
	case s.Implicit && !implicit, s.Implicit && s.Typ.OID == types.OIDRecord:
		w.operand(s.X, false, s)
	case lengthened(s):
		base := *s
		base.Typ, base.Implicit = s.Typ.Base(), true
		w.coercion(&base, s.Typ, s)
	default:
		w.coercion(s.X, s.Typ, s)
	}
}

// lengthened reports whether a cast is two for PostgreSQL: to a type, and to its modifier.
func lengthened(s *expr.Cast) bool { return s.Typ.Mod >= 0 && s.X.Type().OID != s.Typ.OID }

// byFunction reports whether a function makes a cast, rather than a change of the label or the text of the value.
func byFunction(s *expr.Cast) bool {
	return s.Typ.Mod >= 0 || s.Fn != nil && !s.Typ.IsDomain() && s.Fn.Signature() != ""
}

// collation is the name of a type's collation, with its schema unless the search path finds it.
func (w *ruleText) collation(t types.Type) string { return catalog.WrittenCollation(w.r, t.Coll) }

// coercion writes x::t.
func (w *ruleText) coercion(x expr.Scalar, t types.Type, parent expr.Scalar) {
	if p, ok := x.(*expr.Parse); ok {
		if c := w.parsed(p); c != nil {
			x = c
		}
	}
	if c, ok := x.(*expr.Const); ok && c.Typ.OID == t.OID && c.Typ.Mod < 0 {
		w.constant(c, noLabel)
	} else {
		w.group(func() { w.operand(x, false, parent) })
	}
	w.str("::" + w.typeName(t))
}

// typeName is a type's name, with its schema unless the search path finds it.
func (w *ruleText) typeName(t types.Type) string {
	if name, ok := w.names.TypeName(t.OID); ok {
		return name
	}
	return t.String()
}

// parsed reads the constant of a Parse; nil if it is none.
func (w *ruleText) parsed(p *expr.Parse) *expr.Const {
	c, ok := p.X.(*expr.Const)
	if !ok {
		return nil
	}
	d, err := p.Eval(&expr.Context{Ctx: w.b.ctx, Env: w.b.env}, nil)
	if err != nil {
		return &expr.Const{Value: c.Value, Typ: types.TUnknown}
	}
	return &expr.Const{Value: d, Typ: p.Typ}
}

// labelling tells whether a constant is written with its type.
type labelling int

const (
	labelIfNeeded labelling = iota
	noLabel
	alwaysLabel
)

func (w *ruleText) constant(c *expr.Const, label labelling) {
	t := c.Typ
	if t.OID == types.OIDUnknown {
		t = types.TText
	}
	needed := true
	switch {
	case c.Value.IsNull():
		w.str("NULL")
	case t.OID == types.OIDBool:
		w.str(strconv.FormatBool(c.Value.Bool()))
		needed = false
	default:
		text := c.Value.Text
		literal := ""
		if c.Typ.OID == types.OIDUnknown {
			literal = text()
		} else {
			literal = w.format().Text(c.Value, t)
		}
		number := t.OID == types.OIDInt4 && !strings.HasPrefix(literal, "-") ||
			t.OID == types.OIDNumeric && unicode.IsDigit(rune(literal[0])) && strings.ContainsAny(literal, "eE.")
		if number {
			w.str(literal)
			needed = t.OID == types.OIDNumeric && t.Mod >= 0
		} else {
			w.str("'" + strings.ReplaceAll(literal, "'", "''") + "'") // Backslashes are themselves in it.
		}
	}
	if label == alwaysLabel || label == labelIfNeeded && needed {
		w.str("::" + w.typeName(t))
	}
}

// format is that of constants: the session's.
func (w *ruleText) format() *types.Format {
	f := types.Format{}
	if w.b.env != nil {
		f = w.b.env.Format
	}
	f.Names = w.names
	return &f
}

func (w *ruleText) logical(args []expr.Scalar, word string, s expr.Scalar) {
	w.group(func() {
		for i, a := range args {
			if i > 0 {
				w.str(word)
			}
			w.operand(a, false, s)
		}
	})
}

func isOperatorName(name string) bool {
	return name != "" && !unicode.IsLetter(rune(name[0])) && name[0] != '_'
}

// call writes an operator or a function.
func (w *ruleText) call(c *expr.Call) {
	name := c.Fn.Name
	if op := c.Fn.Operator; op != nil {
		name = op.Name
		if !bareOperator(w.r, name, c.Fn.Args, op.OID) {
			name = op.Qualified()
		}
	} else if len(w.r.Operations().Named(name)) > 0 && !bareOperator(w.r, name, c.Fn.Args, 0) {
		name = systemOperator(name)
	}
	switch {
	case c.Fn.Operator == nil && !isOperatorName(name) && c.Fn.Name == name:
		e, _ := w.notes.forms[c].e.(*ast.Call)
		if e == nil {
			w.str(keyword.QuoteIdent(name) + "(")
			w.list(c.Args, true)
			w.str(")")
			return
		}
		w.str(w.functionName(e) + "(")
		w.arguments(e, c.Args)
		w.str(")")
	case len(c.Args) == 1:
		w.group(func() {
			w.str(name + " ")
			w.operand(c.Args[0], true, c)
		})
	default:
		w.group(func() {
			w.operand(c.Args[0], true, c)
			w.str(" " + name + " ")
			w.operand(c.Args[1], true, c)
		})
	}
}

// functionName is the name of a called function, with its schema unless the search path finds it.
func (w *ruleText) functionName(e *ast.Call) string {
	name := e.Name[len(e.Name)-1]
	quoted := keyword.QuoteIdent(name)
	if len(e.Name) == 1 || e.Name[0] == catalog.SystemSchema {
		if schema := w.extensionSchema(name); schema != "" && !slices.Contains(catalog.Path(w.r), schema) {
			return keyword.QuoteIdent(schema) + "." + quoted
		}
		return quoted
	}
	if d := w.r.Routines().ByOID(types.OID(e.Routine)); e.Routine != 0 && d != nil {
		return w.routineName(d.OID())
	}
	if slices.Contains(catalog.Path(w.r), e.Name[0]) && !builtin.SystemFunc(name).Exists() {
		return quoted
	}
	return keyword.QuoteIdent(e.Name[0]) + "." + quoted
}

// extensionSchema returns the schema of the extension that a function is of which the system does not have; "": there is none. Stored expressions
// name such functions without a schema.
func (w *ruleText) extensionSchema(name string) string {
	if builtin.SystemFunc(name).Exists() {
		return ""
	}
	for _, d := range w.r.Extensions().All() {
		e := d.Extension()
		if e != nil && slices.ContainsFunc(e.Procs(), func(p *builtin.Proc) bool { return p.Name == name }) {
			return d.Schema
		}
	}
	return ""
}

// routineName is the name of a routine of a user.
func (w *ruleText) routineName(id types.OID) string {
	name, _ := w.names.RoutineName(types.OIDRegprocedure, id)
	return name[:max(strings.LastIndexByte(name, '('), 0)]
}

// arguments writes those of a call; args are as the function takes them, with defaults that the text does not name.
func (w *ruleText) arguments(e *ast.Call, args []expr.Scalar) {
	if e.Star {
		w.str("*")
		return
	}
	named := false
	for _, name := range e.ArgNames {
		named = named || name != ""
	}
	if named || args == nil {
		args = w.boundAll(e.Args)
	}
	variadic := e.Variadic
	if d := w.r.Routines().ByOID(types.OID(e.Routine)); !named && !variadic && e.Routine != 0 && d != nil && d.Routine().Variadic() && len(e.Args) >= len(args) {
		variadic = true
	} else if len(args) > len(e.Args) && !variadic {
		args = args[:len(e.Args)]
	}
	for i, a := range args {
		if i > 0 {
			w.str(", ")
		}
		if i < len(e.Args) && isUnknownText(w.notes.bound[e.Args[i]]) && takesAny(e, i) {
			w.constant(w.notes.bound[e.Args[i]].(*expr.Const), noLabel)
			continue
		}
		if named && e.ArgNames[i] != "" {
			w.str(keyword.QuoteIdent(e.ArgNames[i]) + " => ")
		}
		if variadic && i == len(args)-1 {
			w.str("VARIADIC ")
		}
		w.expr(a, true)
	}
}

func isUnknownText(x expr.Scalar) bool {
	c, ok := x.(*expr.Const)
	return ok && c.Typ.OID == types.OIDUnknown && !c.Value.IsNull()
}

// takesAny reports whether the function of a call leaves the type of an argument open.
func takesAny(e *ast.Call, i int) bool {
	switch name := e.Name[len(e.Name)-1]; name {
	case "concat_ws", "format":
		return i > 0
	case "concat", "num_nulls", "num_nonnulls", "json_build_array", "json_build_object", "jsonb_build_array", "jsonb_build_object":
		return true
	}
	return false
}

// computedCall writes an aggregate, a window function, or a function that returns a set.
func (w *ruleText) computedCall(e *ast.Call) {
	w.str(w.functionName(e) + "(")
	if e.Distinct {
		w.str("DISTINCT ")
	}
	args := w.notes.args[e]
	if len(e.Within) > 0 {
		w.list(args[:min(len(e.Args), len(args))], true)
		w.str(") WITHIN GROUP (ORDER BY ")
		w.orderBy(e.Within, nil)
	} else {
		w.arguments(e, args)
		if len(e.OrderBy) > 0 {
			w.str(" ORDER BY ")
			w.orderBy(e.OrderBy, nil)
		}
	}
	if e.Filter != nil {
		w.str(") FILTER (WHERE ")
		w.expr(w.boundTo(e.Filter), false)
	}
	w.str(")")
	if e.Over == nil {
		return
	}
	w.str(" OVER ")
	if e.Over.Name != "" && !e.Over.Parens {
		w.ident(e.Over.Name)
		return
	}
	w.window(e.Over)
}

// syntax writes a call that the text writes in another way than name(arguments), and reports whether it did.
func (w *ruleText) syntax(e *ast.Call, c *expr.Call, isCall bool) bool {
	var args []expr.Scalar
	if isCall {
		args = c.Args
	} else {
		args = w.boundAll(e.Args)
	}
	sequence := func(open string, words ...string) {
		w.str(open)
		for i, a := range args {
			if i > 0 {
				w.str(words[i-1])
			}
			w.expr(a, false)
		}
		w.str(")")
	}
	switch e.Syntax {
	case ast.ValueSyntax:
		w.str(strings.ToUpper(e.Name[0]))
		if len(e.Args) > 0 {
			w.str("(")
			w.list(w.boundAll(e.Args), false)
			w.str(")")
		}
	case ast.ExtractSyntax:
		field, ok := args[0].(*expr.Const)
		if !ok {
			return false
		}
		w.str("EXTRACT(" + field.Value.Text() + " FROM ")
		w.expr(args[1], false)
		w.str(")")
	case ast.PositionSyntax:
		w.str("POSITION((")
		w.expr(args[1], false)
		w.str(") IN (")
		w.expr(args[0], false)
		w.str("))")
	case ast.OverlaySyntax:
		sequence("OVERLAY(", " PLACING ", " FROM ", " FOR ")
	case ast.SubstringFrom, ast.SubstringFor:
		if len(args) == 2 && args[1].Type().OID != types.OIDInt4 {
			return false
		}
		sequence("SUBSTRING(", " FROM ", " FOR ")
	case ast.SubstringSimilar:
		sequence("SUBSTRING(", " SIMILAR ", " ESCAPE ")
	case ast.TrimSyntax:
		w.str("TRIM(" + map[string]string{"ltrim": "LEADING", "rtrim": "TRAILING"}[e.Name[len(e.Name)-1]])
		if strings.HasSuffix(string(w.buf), "(") {
			w.str("BOTH")
		}
		if len(args) > 1 {
			w.str(" ")
			w.expr(args[1], false)
		}
		w.str(" FROM ")
		w.expr(args[0], false)
		w.str(")")
	case ast.OverlapsSyntax:
		w.str("((")
		w.list(args[:2], false)
		w.str(") OVERLAPS (")
		w.list(args[2:], false)
		w.str("))")
	case ast.CollationFor:
		w.str("COLLATION FOR (")
		w.expr(w.boundTo(e.Args[0]), false)
		w.str(")")
	case ast.NormalizeSyntax:
		w.str("NORMALIZE(")
		w.expr(args[0], false)
		if form, ok := args[len(args)-1].(*expr.Const); ok && len(args) > 1 {
			w.str(", " + form.Value.Text())
		}
		w.str(")")
	case ast.GroupingSyntax:
		w.str("GROUPING(")
		w.list(w.boundAll(e.Args), true)
		w.str(")")
	default:
		return false
	}
	return true
}
