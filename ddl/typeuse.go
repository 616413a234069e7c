package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/types"
)

// pinNames fixes the meaning of the types and collations in an expression that is about to be stored, after it was bound: those of users get
// their schema, and literals that context has given such a type get it as a cast.
func (r *run) pinNames(e ast.Expr) {
	r.unqualify(e)
	if c, ok := e.(*ast.Collate); ok {
		if found, err := planner.ResolveCollation(c.Name, r.r, 0); err == nil && r.r.Collations().ByOID(found.OID) != nil {
			schema, name := catalog.CollationName(r.r, found)
			c.Name = []string{schema, name}
		}
		return
	}
	planner.PinOperator(e, r.r)
	if call, ok := e.(*ast.Call); ok && call.Routine != 0 {
		if d := r.r.Routines().ByOID(types.OID(call.Routine)); d != nil {
			call.Name = []string{d.Schema, d.Name}
		}
	}
	cast, ok := e.(*ast.Cast)
	if !ok {
		return
	}
	if t, err := planner.ResolveType(&cast.Type, r.r); err == nil && t.Def != nil {
		cast.Type.Name = []string{t.Def.Schema, t.Def.Name}
		if t.IsArray() {
			cast.Type.Array = 1
		}
	}
	if l, ok := cast.X.(*ast.Literal); ok {
		l.Typed = nil
	}
}

// unqualify removes the schema of an extension's function, operator or type: what is stored finds it in whatever schema it is
// (catalog.ForStored).
func (r *run) unqualify(e ast.Expr) {
	all := r.r.Extensions().All()
	if len(all) == 1 {
		return
	}
	has := func(name []string) bool {
		return len(name) == 2 && name[0] != catalog.SystemSchema && r.r.Extensions().In(name[0]) != 0
	}
	switch n := e.(type) {
	case *ast.Call:
		if has(n.Name) {
			n.Name = n.Name[1:]
		}
	case *ast.Cast:
		if has(n.Type.Name) && r.r.Types().Named(n.Type.Name[0], n.Type.Name[1]).Def == nil {
			n.Type.Name = n.Type.Name[1:]
		}
	case *ast.Unary:
		n.Op = r.bareOperator(n.Op)
	case *ast.Binary:
		n.Op = r.bareOperator(n.Op)
	case *ast.Quantified:
		n.Op = r.bareOperator(n.Op)
	}
}

// bareOperator returns the symbol of an operator that is written as one of a schema with an extension.
func (r *run) bareOperator(op string) string {
	qualified, ok := strings.CutPrefix(op, "OPERATOR(")
	if !ok {
		return op
	}
	for _, d := range r.r.Extensions().All() {
		if symbol, ok := strings.CutPrefix(qualified, ast.QuoteIdent(d.Schema)+"."); ok {
			return strings.TrimSuffix(symbol, ")")
		}
	}
	return op
}

// pinned returns the text of an expression that has been bound and is about to be stored.
func (r *run) pinned(e ast.Expr) string {
	ast.InspectExpr(e, ast.Visitor{Expr: r.pinNames})
	return e.String()
}

// typeUse is an object whose stored expression names a type or a collation.
type typeUse struct {
	what string // as messages call it: "default value for column a of table t"
	// The object: a column's default, a generated column, a check, a policy, a trigger or an index of the table by its number, the table itself
	// as a view, or an observer.
	policy   uint32
	index    uint32
	column   uint32
	computed uint32 // a generated column
	check    uint32
	trigger  uint32
	observer uint64
	relation bool // the relation as a whole
}

// mapExpressions calls visit with each expression that t stores, and replaces its text by that of the tree as visit leaves it. visit
// gets a function that inspects the tree.
func (r *run) mapExpressions(t *catalog.TableDescriptor, visit func(use typeUse, inspect func(ast.Visitor))) error {
	one := func(text *string, use typeUse) error {
		if *text == "" {
			return nil
		}
		e, err := sql.ParseExpr(*text)
		if err != nil {
			return err
		}
		visit(use, func(v ast.Visitor) { ast.InspectExpr(e, v) })
		*text = e.String()
		return nil
	}
	of := " of table " + t.Name
	for i := range t.Columns {
		c := &t.Columns[i]
		if err := one(&c.Default, typeUse{what: "default value for column " + c.Name + of, column: c.ID}); err != nil {
			return err
		}
		if err := one(&c.Generated, typeUse{what: "column " + c.Name + of, computed: c.ID}); err != nil {
			return err
		}
	}
	for i := range t.Checks {
		k := &t.Checks[i]
		if err := one(&k.Expr, typeUse{what: "constraint " + k.Name + " on table " + t.Name, check: k.OID}); err != nil {
			return err
		}
	}
	for i := range t.Policies {
		p := &t.Policies[i]
		use := typeUse{what: "policy " + p.Name + " on table " + t.Name, policy: p.OID}
		for _, text := range []*string{&p.Using, &p.Check} {
			if err := one(text, use); err != nil {
				return err
			}
		}
	}
	for i := range t.Triggers {
		g := &t.Triggers[i]
		if err := one(&g.When, typeUse{what: "trigger " + g.Name + " on table " + t.Name, trigger: g.OID}); err != nil {
			return err
		}
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		use := typeUse{what: "index " + ix.Name, index: ix.OID}
		text := func(x **catalog.ExprText) error {
			if *x == nil {
				return nil
			}
			changed := **x // How it is printed is made anew when the type has changed: reprintIndexes.
			*x = &changed
			return one(&changed.SQL, use)
		}
		for j := range t.Computed {
			if holdsColumn(ix, t.Computed[j].ID) {
				if err := text(&t.Computed[j].Expr); err != nil {
					return err
				}
			}
		}
		if err := text(&ix.Where); err != nil {
			return err
		}
	}
	if t.ViewQuery != "" {
		stmt, err := sql.ParseStatement(t.ViewQuery)
		if err != nil {
			return err
		}
		visit(typeUse{what: "view " + t.Name}, func(v ast.Visitor) { ast.InspectStatement(stmt, v) })
		t.ViewQuery = stmt.String()
	}
	for i := range t.Observers {
		o := &t.Observers[i]
		use := typeUse{what: "observer " + o.Name + " on table " + t.Name, observer: o.ID}
		if err := one(&o.When, use); err != nil {
			return err
		}
		if o.Body == "" {
			continue
		}
		statements, err := ParseObserverBody(o.Body)
		if err != nil {
			return err
		}
		for _, stmt := range statements {
			visit(use, func(v ast.Visitor) { ast.InspectStatement(stmt, v) })
		}
		o.Body = bodyText(statements)
	}
	return nil
}

// castsTo returns a visitor that calls f with each cast to a type or its array type.
func castsTo(d *catalog.TypeDescriptor, f func(*ast.Cast)) ast.Visitor {
	return ast.Visitor{Expr: func(e ast.Expr) {
		if c, ok := e.(*ast.Cast); ok && len(c.Type.Name) == 2 && c.Type.Name[0] == d.Schema && c.Type.Name[1] == d.Name {
			f(c)
		}
	}}
}

// mapDomain is mapExpressions for a domain: check is the constraint's number, 0 for the default.
func mapDomain(d *catalog.TypeDescriptor, visit func(check types.OID, inspect func(ast.Visitor))) error {
	one := func(text *string, check types.OID) error {
		if *text == "" {
			return nil
		}
		e, err := sql.ParseExpr(*text)
		if err != nil {
			return err
		}
		visit(check, func(v ast.Visitor) { ast.InspectExpr(e, v) })
		*text = e.String()
		return nil
	}
	if err := one(&d.Default, 0); err != nil {
		return err
	}
	for i := range d.Checks {
		if err := one(&d.Checks[i].Expr, d.Checks[i].OID); err != nil {
			return err
		}
	}
	return nil
}

// rewriting makes a visitor that changes expressions, and calls changed before it does.
type rewriting func(changed func()) ast.Visitor

// castsChanged changes the casts to a type or its array type.
func castsChanged(d *catalog.TypeDescriptor, change func(*ast.Cast)) rewriting {
	return func(changed func()) ast.Visitor {
		return castsTo(d, func(c *ast.Cast) {
			changed()
			change(c)
		})
	}
}

// rewriteDomains is rewriteUses for the expressions of domains.
func (r *run) rewriteDomains(ctx context.Context, with rewriting) error {
	for _, other := range r.r.Types().All() {
		if other.Kind != types.Domain {
			continue
		}
		next, changed := other.Clone(), false
		visitor := with(func() { changed = true })
		if err := mapDomain(next, func(_ types.OID, inspect func(ast.Visitor)) { inspect(visitor) }); err != nil {
			return err
		}
		if changed {
			if err := r.ch.PutType(ctx, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewriteUses changes all stored expressions that name a type or a collation.
func (r *run) rewriteUses(ctx context.Context, with rewriting) error {
	if err := r.rewriteDomains(ctx, with); err != nil {
		return err
	}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Kind == catalog.KindVirtual || t.Kind == catalog.KindSequence {
			continue
		}
		next, changed := t.Clone(), false
		visitor := with(func() { changed = true })
		if err := r.mapExpressions(next, func(_ typeUse, inspect func(ast.Visitor)) { inspect(visitor) }); err != nil {
			return err
		}
		if changed {
			if err := r.ch.Update(ctx, t, next, false); err != nil {
				return err
			}
		}
	}
	return r.look(ctx)
}

// renamedInLiteral renames a label in the text of a literal that is cast to the enum or to its arrays.
func renamedInLiteral(c *ast.Cast, from, to string) {
	l, ok := c.X.(*ast.Literal)
	if !ok || l.Kind != ast.LiteralString {
		return
	}
	if c.Type.Array == 0 {
		if l.Value == from {
			l.Value = to
		}
		return
	}
	texts := types.TText.ArrayOf()
	d, err := types.ParseText(texts, l.Value, nil)
	if err != nil {
		return // It was read as an array when it was stored.
	}
	a := &types.Array{Elem: types.TText, Elems: slices.Clone(d.Array().Elems)}
	for i, e := range a.Elems {
		if !e.IsNull() && e.Text() == from {
			a.Elems[i] = types.Text(to)
		}
	}
	l.Value = string(types.AppendText(nil, types.NewArray(a), texts, nil))
}

// columnUse is a column of a type.
type columnUse struct {
	table  *catalog.TableDescriptor
	column catalog.ColumnDescriptor
}

// columnsOf lists the columns of tables that have a type or its array type, the arrays first.
func (r *run) columnsOf(ctx context.Context, d *catalog.TypeDescriptor) (uses []columnUse, err error) {
	for _, oid := range []uint64{d.ArrayID, d.ID} {
		found, err := r.columnsWhere(ctx, func(t types.Type) bool { return t.OID == types.OID(oid) })
		if err != nil {
			return nil, err
		}
		uses = append(uses, found...)
	}
	return uses, nil
}

// columnsWhere lists the columns of tables for whose type a condition holds.
func (r *run) columnsWhere(ctx context.Context, is func(types.Type) bool) (uses []columnUse, err error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.Kind != catalog.KindTable || t.Materialized {
			continue
		}
		for i := range t.Columns {
			if is(t.Columns[i].Type) {
				uses = append(uses, columnUse{t, t.Columns[i]})
			}
		}
	}
	return uses, nil
}

// dependency is a type or a collation, of which something depends.
type dependency struct {
	// uses makes a visitor that calls found for each expression that names it.
	uses func(found func()) ast.Visitor
	// ofType reports whether a column of the type depends on it.
	ofType func(types.Type) bool
	// ofView: so does a view with such a column.
	ofView bool
	// ofKey reports whether a key of an index depends on it; nil: none does.
	ofKey func(*catalog.IndexColumn) bool
}

// typeDependency is a type with its array type.
func typeDependency(d *catalog.TypeDescriptor) dependency {
	return dependency{
		uses:   func(found func()) ast.Visitor { return castsTo(d, func(*ast.Cast) { found() }) },
		ofType: func(t types.Type) bool { return t.OID == types.OID(d.ID) || t.OID == types.OID(d.ArrayID) },
		ofView: true,
	}
}

// dependents lists what else in a relation depends on a type or a collation: expressions, keys of indexes, and views with a column of the type.
// Those of the columns that are dropped with it are not among them.
func (r *run) dependents(t *catalog.TableDescriptor, on dependency, columns []columnUse) (uses []typeUse, err error) {
	dropped := func(id uint32) bool {
		return slices.ContainsFunc(columns, func(u columnUse) bool { return u.table.ID == t.ID && u.column.ID == id })
	}
	err = r.mapExpressions(t.Clone(), func(use typeUse, inspect func(ast.Visitor)) {
		found := false
		inspect(on.uses(func() { found = true }))
		if use.check != 0 {
			inspect(ast.Visitor{Expr: func(e ast.Expr) {
				if ref, ok := e.(*ast.ColumnRef); ok {
					if ord := t.ColumnNamed(ref.Parts[len(ref.Parts)-1]); ord >= 0 && dropped(t.Columns[ord].ID) {
						found = false
					}
				}
			}})
		}
		if column := max(use.column, use.computed); found && !(column != 0 && dropped(column)) && !slices.Contains(uses, use) {
			uses = append(uses, use)
		}
	})
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		use := typeUse{what: "index " + ix.Name, index: ix.OID}
		ofKey := func(c catalog.IndexColumn) bool { return on.ofKey(&c) }
		if on.ofKey != nil && slices.ContainsFunc(ix.Columns, ofKey) && !slices.Contains(uses, use) {
			uses = append(uses, use)
		}
		if slices.ContainsFunc(columns, func(u columnUse) bool { return u.table.ID == t.ID && indexNeeds(t, ix, &u.column) }) {
			uses = slices.DeleteFunc(uses, func(u typeUse) bool { return u == use })
		}
	}
	if on.ofView && t.HasQuery() && len(uses) == 0 {
		for i := range t.Columns {
			if on.ofType(t.Columns[i].Type) {
				return []typeUse{{what: kindWord(t) + " " + t.Name}}, nil
			}
		}
	}
	return uses, err
}

// indexNeeds reports whether dropping a column drops an index.
func indexNeeds(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor, c *catalog.ColumnDescriptor) bool {
	if holdsColumn(ix, c.ID) {
		return true
	}
	names := func(x *catalog.ExprText) bool { return x != nil && slices.Contains(namesIn(x.SQL), c.Name) }
	return names(ix.Where) || slices.ContainsFunc(t.Computed, func(k catalog.ColumnDescriptor) bool { return holdsColumn(ix, k.ID) && names(k.Expr) })
}

// namesIn lists the columns that a stored expression over a row names.
func namesIn(text string) (names []string) {
	e, err := sql.ParseExpr(text)
	if err != nil {
		return nil
	}
	ast.InspectExpr(e, ast.Visitor{Expr: func(e ast.Expr) {
		if ref, ok := e.(*ast.ColumnRef); ok {
			names = append(names, ref.Parts[len(ref.Parts)-1])
		}
	}})
	return names
}

// joinLines joins the lines of a DETAIL.
func joinLines(lines []string) string { return strings.Join(lines, "\n") }
