package ddl

import (
	"context"
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/inverted"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// extensionDropping is what dropping an extension drops with it, and the lines that say why.
type extensionDropping struct {
	typeDropping
	// textSearch are the configurations and dictionaries that use those of the extension.
	textSearch []*catalog.TextSearchDescriptor
}

// extensionProbe finds what depends on an extension, or on routines. Stored expressions and queries are bound, which tells the functions,
// operators and types that they use.
type extensionProbe struct {
	*run                                // whose Env tells used
	of     *catalog.ExtensionDescriptor // nil: it finds what depends on routines instead
	prefix string                       // before the names of the extension's objects in messages
	found  extensionDropping
	used   []builtin.Use
}

func (r *run) extensionUses(ctx context.Context, d *catalog.ExtensionDescriptor) (*extensionDropping, error) {
	deps, probing := *r.Deps, *r
	env := *r.Env
	probing.Deps, deps.Env = &deps, &env
	p := &extensionProbe{run: &probing, of: d}
	p.found.what = "DROP EXTENSION … CASCADE"
	if !slices.Contains(r.path, d.Schema) {
		p.prefix = ast.QuoteIdent(d.Schema) + "."
	}
	env.ExtensionUsed = func(use builtin.Use) {
		if use.Extension == d.Name {
			p.used = append(p.used, use)
		}
	}
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b *catalog.TableDescriptor) int { return int(int64(a.ID) - int64(b.ID)) })
	for _, t := range all {
		if t.Kind == catalog.KindVirtual || t.Kind == catalog.KindSequence {
			continue
		}
		if err := p.relation(ctx, t); err != nil {
			return nil, err
		}
	}
	for _, typ := range r.r.Types().All() {
		if err := p.userType(ctx, typ); err != nil {
			return nil, err
		}
	}
	if err := p.viewsOverViews(ctx); err != nil {
		return nil, err
	}
	return &p.found, p.textSearch(ctx)
}

// textSearch finds the dictionaries and configurations that use the dictionary or the template of the extension, and what depends on them.
func (p *extensionProbe) textSearch(ctx context.Context) error {
	if p.of.Name != "unaccent" {
		return nil
	}
	dictionary, template := textsearch.DictionaryNamed("unaccent").OID, textsearch.TemplateNamed("unaccent").OID
	p.found.textSearch = p.textSearchWhere(func(d *catalog.TextSearchDescriptor) bool { return d.Uses(dictionary) || d.Template == template })
	for _, d := range p.found.textSearch {
		what := " depends on text search dictionary "
		if d.Template != 0 {
			what = " depends on text search template "
		}
		p.found.lines = append(p.found.lines, d.Kind()+" "+p.textSearchName(d)+what+p.prefix+"unaccent")
	}
	further := p.withConfigurations(p.found.textSearch)
	for _, d := range further[len(p.found.textSearch):] {
		p.found.lines = append(p.found.lines, d.Kind()+" "+p.textSearchName(d)+" depends on text search dictionary of extension unaccent")
	}
	uses, err := p.run.textSearchUses(ctx, further, "")
	if err == nil {
		p.found.lines = append(p.found.lines, uses.lines...)
	}
	return err
}

// uses reports whether what f binds uses the extension, and notes the dependency. What cannot be bound depends on nothing.
func (p *extensionProbe) uses(ctx context.Context, what string, f func() error) (bool, error) {
	p.used = p.used[:0]
	if err := f(); err != nil && ctx.Err() != nil {
		return false, ctx.Err()
	}
	if len(p.used) == 0 {
		return false, nil
	}
	p.depends(what, p.used[0])
	return true, nil
}

func (p *extensionProbe) depends(what string, use builtin.Use) {
	if use.Routine != nil {
		d := p.r.Routines().ByOID(use.Routine.OID)
		p.found.lines = append(p.found.lines, what+" depends on function "+p.routineSignature(d))
		return
	}
	if use.Operator != 0 {
		p.found.lines = append(p.found.lines, what+" depends on "+p.shownOperator(p.r.Operations().Operator(use.Operator)))
		return
	}
	if use.Cast != 0 {
		p.found.lines = append(p.found.lines, what+" depends on "+p.shownCast(p.r.Operations().Cast(use.Cast)))
		return
	}
	if use.From != 0 {
		p.found.lines = append(p.found.lines, what+" depends on a conversion")
		return
	}
	if use.TextSearch != 0 {
		d := p.r.TextSearch().ByOID(types.OID(use.TextSearch))
		p.found.lines = append(p.found.lines, what+" depends on "+d.Kind()+" "+p.textSearchName(d))
		return
	}
	p.found.lines = append(p.found.lines, what+" depends on "+use.Kind+" "+p.prefix+use.Name)
}

// ofType returns what a type is of the extension; false if it is not of it.
func (p *extensionProbe) ofType(t types.Type) (builtin.Use, bool) {
	use := builtin.TypeUse(t)
	return use, p.of != nil && use.Extension == p.of.Name
}

// relation finds the uses in a table or view. A materialized view that is used as a whole has no other uses.
func (p *extensionProbe) relation(ctx context.Context, t *catalog.TableDescriptor) error {
	of := " of table " + t.Name
	if t.HasQuery() {
		before := len(p.found.others)
		if err := p.view(ctx, t); err != nil || !t.Materialized || len(p.found.others) > before {
			return err
		}
	}
	if t.IsPartitioned() {
		found, err := p.uses(ctx, "table "+t.Name, func() error { return p.partitionKey(ctx, t) })
		if err != nil || found {
			p.found.tables = append(p.found.tables, typedTable{table: t})
			return err
		}
	}
	uses := typeUses{relation: t}
	add := func(what string, use typeUse, f func() error) error {
		found, err := p.uses(ctx, what, f)
		if found {
			use.what = what
			uses.uses = append(uses.uses, use)
		}
		return err
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if use, ok := p.ofType(c.Type); ok {
			p.depends("column "+c.Name+of, use)
			p.found.columns = append(p.found.columns, columnUse{t, *c})
			continue
		}
		if c.Generated != "" {
			err := add("column "+c.Name+of, typeUse{computed: c.ID}, func() error {
				_, err := p.bindText(ctx, t, c.Generated, c.Type, inGenerated)
				return err
			})
			if err != nil {
				return err
			}
		}
		if c.Default == "" {
			continue
		}
		err := add("default value for column "+c.Name+of, typeUse{column: c.ID}, func() error {
			_, err := p.bindText(ctx, nil, c.Default, c.Type, inDefault)
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range t.Checks {
		k := &t.Checks[i]
		err := add("constraint "+k.Name+" on table "+t.Name, typeUse{check: k.OID}, func() error {
			_, err := p.bindText(ctx, t, k.Expr, types.TBool, inCheck)
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if what, class := p.classUse(t, ix); class != "" {
			p.depends(what, builtin.Use{Kind: "operator class", Name: class})
			uses.uses = append(uses.uses, typeUse{what: what, index: ix.OID})
			continue
		}
		err := indexExpressions(t, ix, func(x *catalog.ExprText) error {
			return add("index "+ix.Name, typeUse{index: ix.OID}, func() error {
				_, err := p.bindText(ctx, t, x.SQL, types.Type{}, inIndex)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	for i := range t.Triggers {
		g := &t.Triggers[i]
		if g.When == "" {
			continue
		}
		err := add("trigger "+g.Name+" on table "+t.Name, typeUse{trigger: g.OID}, func() error {
			_, err := planner.ExprUses(ctx, catalog.StoredExpr{Text: g.When, Table: t, Trigger: true, Type: types.TBool}, p.r, p.Env)
			return err
		})
		if err != nil {
			return err
		}
	}
	for i := range t.Policies {
		k := &t.Policies[i]
		err := add("policy "+k.Name+" on table "+t.Name, typeUse{policy: k.OID}, func() error { return p.policy(ctx, t, k) })
		if err != nil {
			return err
		}
	}
	for i := range t.Observers {
		o := &t.Observers[i]
		err := add("observer "+o.Name+" on table "+t.Name, typeUse{observer: o.ID}, func() error {
			return p.checkObserver(ctx, catalog.ForStored(p.r), t, o)
		})
		if err != nil {
			return err
		}
	}
	if len(uses.uses) > 0 {
		p.found.others = append(p.found.others, uses)
	}
	return nil
}

// partitionKey binds the expressions by which a table is partitioned.
func (p *extensionProbe) partitionKey(ctx context.Context, t *catalog.TableDescriptor) error {
	for _, k := range t.Partitioning.Keys {
		if c := t.ColumnByID(k.ColumnID); c.Expr != nil {
			if _, err := p.bindText(ctx, t, c.Expr.SQL, types.Type{}, inIndex); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *extensionProbe) policy(ctx context.Context, t *catalog.TableDescriptor, k *catalog.PolicyDescriptor) error {
	for _, text := range []string{k.Using, k.Check} {
		if text == "" {
			continue
		}
		e, err := sql.ParseExpr(text)
		if err == nil {
			err = planner.CheckPolicy(ctx, e, t, catalog.ForStored(p.r), p.Env)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// view finds the uses in a view. Those of the views that it reads are theirs, and it depends on them.
func (p *extensionProbe) view(ctx context.Context, t *catalog.TableDescriptor) error {
	what := p.describe(ctx, t)
	found, err := p.uses(ctx, what, func() error {
		_, err := planner.ViewUses(ctx, t, p.r, p.Env) // Not what a plan uses: indexes of tables, the queries of other views.
		return err
	})
	if err != nil {
		return err
	}
	for i := range t.Columns {
		if use, ok := p.ofType(t.Columns[i].Type); ok && !found {
			p.depends(what, use)
			found = true
		}
	}
	if found {
		p.found.others = append(p.found.others, typeUses{t, []typeUse{{what: what}}})
	}
	return nil
}

// userType finds the uses in a type of a user.
func (p *extensionProbe) userType(ctx context.Context, d *catalog.TypeDescriptor) error {
	name := builtin.TypeName(d.Type())
	for _, f := range d.Fields {
		if use, ok := p.ofType(f.Type); ok {
			p.depends("column "+f.Name+" of composite type "+name, use)
			p.found.fields = append(p.found.fields, fieldUse{d, f, f.Type.IsArray()})
		}
	}
	if d.Kind != types.Domain && d.Kind != types.RangeKind {
		return nil
	}
	if use, ok := p.ofType(d.Parent); ok {
		p.depends("type "+name, use)
		within, err := p.usesOf(ctx, d)
		if err != nil {
			return err
		}
		p.found.lines = append(p.found.lines, within.describe(onType(d))...)
		p.found.domains = append(p.found.domains, domainUse{domain: d, within: within})
		return nil
	}
	bind := func(what string, check types.OID, text string) error {
		if text == "" {
			return nil
		}
		found, err := p.uses(ctx, what, func() error {
			e, err := sql.ParseExpr(text)
			switch {
			case err != nil:
			case check == 0:
				_, err = p.bindText(ctx, nil, text, d.Type(), inDefault)
			default:
				_, err = planner.BindDomainCheck(ctx, e, d.Parent, catalog.ForStored(p.r), p.Env)
			}
			return err
		})
		if found {
			p.found.domains = append(p.found.domains, domainUse{domain: d, check: check})
		}
		return err
	}
	if err := bind("default value for domain "+name, 0, d.Default); err != nil {
		return err
	}
	for i := range d.Checks {
		if err := bind("constraint "+d.Checks[i].Name, d.Checks[i].OID, d.Checks[i].Expr); err != nil {
			return err
		}
	}
	return nil
}

// classUse returns the operator class of the extension that an index has, and what depends on it; "" for none.
func (p *extensionProbe) classUse(t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) (what, class string) {
	if p.of == nil { // What is looked for are functions.
		return "", ""
	}
	switch p.of.Name {
	case "pg_trgm":
		if slices.ContainsFunc(ix.Inverted, func(c catalog.InvertedColumn) bool { return c.Class == string(inverted.Trigram) }) {
			return "index " + ix.Name, string(inverted.Trigram) + " for access method gin"
		}
	case ginExtension:
		for _, c := range ix.Inverted {
			if inverted.Class(c.Class).IsScalar() {
				return "index " + ix.Name, c.Class + " for access method gin"
			}
		}
	case gistExtension:
		for _, e := range ix.Exclude {
			if scalar, ok := p.scalarClass(ix.Method, t.ColumnByID(e.ColumnID).Type.Underlying()); ok && (e.Class == "" || e.Class == scalar.name) {
				return "constraint " + ix.Name + " on table " + t.Name, scalar.name + " for access method gist"
			}
		}
	}
	return "", ""
}
