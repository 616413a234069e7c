package planner

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Need is a privilege that running a plan needs: on a relation and its columns, USAGE of a schema that the statement names, or EXECUTE
// of a function. A plan has one for each relation that its text names, and Authorize checks them; nothing else in a statement with a plan decides who may
// run it.
type Need struct {
	Relation *catalog.TableDescriptor // nil: Schema, Function or Routine
	Schema   string
	Function string                     // the signature of a function whose privileges have been changed, "" for another need
	Routine  *catalog.RoutineDescriptor // of a user; nil for another need
	Behind   bool                       // Routine is not named: an operator or a cast calls it
	Pos      int
	// As is the role whose privileges count: that of the owner of the view which names the relation; 0: whoever runs the statement.
	As uint32
	// Privileges are those needed. Of Select, Insert and Update, those on all of the columns below do as well, or on any column if there
	// are none.
	Privileges acl.Privileges
	// Named: the statement names the relation, so that the role has to use its schema; views and bodies name what was found before.
	Named bool
	// Observer is one whose changes the statement takes, which needs the privileges of its owner; nil: none.
	Observer                    *catalog.ObserverDescriptor
	Selected, Inserted, Updated colSet // ordinals
}

// need adds what the statement needs of a relation to be read or written.
func (b *binder) need(t *catalog.TableDescriptor, p acl.Privileges) *Need {
	n := &Need{Relation: t, As: b.as, Privileges: p, Named: len(b.views) == 0}
	b.needs = append(b.needs, n)
	return n
}

// needSchema adds the use of a schema by its name.
func (b *binder) needSchema(name ast.TableName) {
	if name.Schema == "" || len(b.views) > 0 || b.stored > 0 { // Views and policies name what was found when they were created.
		return
	}
	for _, n := range b.needs {
		if n.Relation == nil && n.Function == "" && n.Schema == name.Schema {
			return
		}
	}
	b.needs = append(b.needs, &Need{Schema: name.Schema, Pos: int(name.Pos), Privileges: acl.Usage})
}

// function is a function, an aggregate, an operator or a cast.
type function interface {
	Signature() string
	Use() builtin.Use
}

// useExtension records that the plan depends on what an extension has; the zero Use is nothing.
func (b *binder) useExtension(use builtin.Use) {
	if (use.Routine != nil || use.Operator != 0 || use.Cast != 0) && b.env != nil && b.env.ObjectUsed != nil {
		b.env.ObjectUsed(use)
	}
	switch {
	case use.Operator != 0:
		b.usedOperators = append(b.usedOperators, use.Operator)
	case use.Cast != 0:
		b.usedCasts = append(b.usedCasts, use.Cast)
	}
	if use.Extension == "" {
		return
	}
	if d := b.r.Extensions().Named(use.Extension); d != nil && !slices.Contains(b.extensions, d) {
		b.extensions = append(b.extensions, d)
	}
	if b.env != nil && b.env.ExtensionUsed != nil {
		b.env.ExtensionUsed(use)
	}
}

// needFunction adds the use of a function, by its signature. Only functions whose privileges somebody has changed are listed: all roles
// may use the others. AS OF SYSTEM TIME lists every function, since the privileges of the present decide. A plan is made anew when such privileges change (Plan.ObjectsVersion).
func (b *binder) needFunction(f function) {
	if f.Use().Routine != nil {
		b.useRoutine(f)
		return
	}
	b.useExtension(f.Use())
	if !b.checksFunctions() {
		return
	}
	signature := f.Signature()
	if signature == "" || !b.past() && b.r.Grants().ObjectACL(acl.Function, signature) == nil {
		return
	}
	for _, n := range b.needs {
		if n.Function == signature {
			return
		}
	}
	b.needs = append(b.needs, &Need{Function: signature, Privileges: acl.Execute})
}

// past reports whether the statement reads as of a time.
func (b *binder) past() bool { return b.travels != nil && b.travels.AsOf() != nil }

// checksFunctions reports whether there are functions that not every role may use.
func (b *binder) checksFunctions() bool { return len(b.r.Grants().Objects) > 0 || b.past() }

// needOperator adds the use of the function behind an operator; l is the zero Type for a prefix operator.
func (b *binder) needOperator(op string, l, r types.Type) {
	if !b.checksFunctions() {
		return
	}
	if fn, err := b.sources().ResolveOperator(op, l, r); err == nil { // The caller reports the error.
		b.needFunction(fn)
	}
}

// selectColumn notes that the statement reads a column.
func (n *Need) selectColumn(ordinal int) {
	n.Privileges |= acl.Select
	n.Selected.add(ordinal)
}

// insertColumns notes that the statement inserts values given for columns.
func (n *Need) insertColumns(ordinals []int) {
	n.Privileges |= acl.Insert
	n.Inserted.addList(ordinals)
}

// updateColumns notes that the statement updates columns.
func (n *Need) updateColumns(ordinals []int) {
	n.Privileges |= acl.Update
	n.Updated.addList(ordinals)
}

// ViewColumns returns the columns that the query of a view reads, by relation.
func ViewColumns(ctx context.Context, view *catalog.TableDescriptor, r catalog.Resolver, env *builtin.Env) ([]catalog.RelationColumns, error) {
	stmt, err := sql.ParseStatement(view.ViewQuery)
	if err != nil {
		return nil, err
	}
	plan, err := Build(ctx, stmt, r, env, Options{NoSlots: true})
	if err != nil {
		return nil, err
	}
	var relations []*catalog.TableDescriptor
	read := map[uint64]*colSet{}
	for _, n := range plan.Needs {
		if n.Relation == nil || !n.Named { // What a view in the query reads is not named by it.
			continue
		}
		if read[n.Relation.ID] == nil {
			relations = append(relations, n.Relation)
			read[n.Relation.ID] = &colSet{}
		}
		read[n.Relation.ID].addAll(n.Selected)
	}
	var uses []catalog.RelationColumns
	for _, t := range relations {
		use := catalog.RelationColumns{Relation: t}
		read[t.ID].each(func(ordinal int) { use.Columns = append(use.Columns, ordinal) })
		uses = append(uses, use)
	}
	return uses, nil
}

// Authorize returns 42501 unless a role has all privileges that the plan needs.
func (p *Plan) Authorize(a *catalog.Access) error {
	for _, n := range p.Needs {
		as := a
		if n.As != 0 && n.As != a.Role {
			as = a.As(n.As)
		}
		if n.Routine != nil {
			if err := RoutineDenied(a, n.Routine); err != nil { // Also in a view, whoever owns it.
				return err
			}
			continue
		}
		if n.Function != "" {
			if err := FunctionDenied(a, n.Function); err != nil { // Also in a view, whoever owns it.
				return err
			}
			continue
		}
		if n.Relation == nil {
			if as.Schema(n.Schema, acl.Usage) == 0 {
				return SchemaDenied(n.Schema, n.Pos)
			}
			continue
		}
		if err := n.authorize(as); err != nil {
			return err
		}
	}
	return nil
}

// authorize returns 42501 unless the role has what is needed of the relation.
func (n *Need) authorize(a *catalog.Access) error {
	switch {
	case !n.granted(a):
		return RelationDenied(n.Relation)
	case n.Observer != nil && !a.Owns(n.Observer.OwnerOID()):
		return pgerror.New(pgerror.InsufficientPrivilege, "must be owner of observer %s", n.Observer.Name)
	}
	return nil
}

// RoutineDenied returns 42501 if a role may not execute a routine.
func RoutineDenied(a *catalog.Access, d *catalog.RoutineDescriptor) error {
	if a.Routine(d, acl.Execute) != 0 {
		return nil
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for %s %s", d.Kind, d.Name)
}

// functionDenied is the error of a role that may not execute a function with a signature.
func functionDenied(signature string) error {
	name, _, _ := strings.Cut(signature, "(")
	kind := "function"
	if builtin.IsAggregate(name) {
		kind = "aggregate"
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for %s %s", kind, name)
}

// granted reports whether the role has the privileges needed of a relation.
func (n *Need) granted(a *catalog.Access) bool {
	missing := n.Privileges &^ a.Relation(n.Relation, n.Privileges, false)
	if missing == 0 {
		return true
	}
	if missing&^(acl.Select|acl.Insert|acl.Update) != 0 {
		return false
	}
	for _, c := range [...]struct {
		privilege acl.Privileges
		ordinals  colSet
	}{{acl.Select, n.Selected}, {acl.Insert, n.Inserted}, {acl.Update, n.Updated}} {
		if missing&c.privilege == 0 {
			continue
		}
		if c.ordinals.empty() {
			if !a.AnyColumn(n.Relation, c.privilege) {
				return false
			}
			continue
		}
		ok := true
		c.ordinals.each(func(ordinal int) { ok = ok && a.Column(n.Relation, ordinal, c.privilege) != 0 })
		if !ok {
			return false
		}
	}
	return true
}

// RelationDenied is the error of a role without a privilege on a relation.
func RelationDenied(t *catalog.TableDescriptor) error {
	kind := "table"
	switch t.Kind {
	case catalog.KindView:
		kind = "view"
	case catalog.KindSequence:
		kind = "sequence"
	}
	if t.Materialized {
		kind = "materialized view"
	}
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for %s %s", kind, t.Name)
}

// SchemaDenied is the error of a role that may not use a schema; pos is where the statement names it.
func SchemaDenied(name string, pos int) error {
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for schema %s", name).At(pos)
}
