package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// renameSchema is ALTER SCHEMA … RENAME TO. Objects and stored expressions name their schemas, so that all of them are written again. The bodies of
// functions that are kept as text, and settings of search_path, stay as they are, as in PostgreSQL.
func (r *run) renameSchema(ctx context.Context, from, to string) error {
	if err := r.mayRenameSchema(ctx, from, to); err != nil {
		return err
	}
	m := &schemaRenaming{run: r, from: from, to: to}
	for _, step := range []func(context.Context) error{m.relations, m.types, m.routines, m.others} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := r.ch.RenameSchema(ctx, from, to, r.access.Grants.Schemas[from]); err != nil {
		return err
	}
	if err := r.look(ctx); err != nil {
		return err
	}
	for _, id := range m.indexed {
		t, err := r.r.RelationByID(ctx, id)
		if err != nil {
			return err
		}
		if err := r.reprintIndexesOf(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) mayRenameSchema(ctx context.Context, from, to string) error {
	for _, name := range []string{from, to} {
		exists, err := r.r.SchemaExists(ctx, name)
		switch {
		case err != nil:
			return err
		case name == from && !exists:
			return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name)
		case name == to && exists:
			return pgerror.New(duplicateSchema, "schema %q already exists", name)
		}
	}
	switch {
	case slices.Contains([]string{catalog.OwnSchema, catalog.SystemSchema, catalog.InformationSchema}, from) || catalog.IsTemporary(from):
		return pgerror.Unsupported("ALTER SCHEMA "+from, "It belongs to the system.")
	case !r.access.OwnsSchema(from):
		return mustBeOwner("schema", from)
	case r.access.Database(acl.Create) == 0:
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied for database %s", r.Database)
	case strings.HasPrefix(to, "pg_"):
		return reservedSchema(to)
	}
	return nil
}

func reservedSchema(name string) *pgerror.Error {
	return pgerror.New(pgerror.ReservedName, "unacceptable schema name %q", name).WithDetail("The prefix \"pg_\" is reserved for system schemas.")
}

// schemaRenaming gives a schema another name in what is stored.
type schemaRenaming struct {
	*run
	from, to string
	changed  bool // by visitor, since it was set to false
	// indexed are the tables with indexes whose expressions have changed, and are to be printed anew.
	indexed []uint64
}

// path changes the name of an object that is qualified by the schema.
func (m *schemaRenaming) path(name []string) {
	if len(name) > 1 && name[0] == m.from {
		name[0], m.changed = m.to, true
	}
}

// text returns the text of a name, as a constant of regclass has it, by the schema's new name.
func (m *schemaRenaming) text(name string) string {
	rest, ok := strings.CutPrefix(name, ast.QuoteIdent(m.from)+".")
	if !ok {
		return name
	}
	m.changed = true
	return ast.QuoteIdent(m.to) + "." + rest
}

// operator does so for an operator that is written with its schema.
func (m *schemaRenaming) operator(op string) string {
	rest, ok := strings.CutPrefix(op, "OPERATOR("+ast.QuoteIdent(m.from)+".")
	if !ok {
		return op
	}
	m.changed = true
	return "OPERATOR(" + ast.QuoteIdent(m.to) + "." + rest
}

// visitor changes all names in a tree that are qualified by the schema.
func (m *schemaRenaming) visitor() ast.Visitor {
	relation := func(name *ast.TableName) {
		if name.Schema == m.from {
			name.Schema, m.changed = m.to, true
		}
	}
	return ast.Visitor{Target: relation, Table: func(t *ast.TableRef) { relation(&t.Name) }, Expr: m.expr}
}

func (m *schemaRenaming) expr(e ast.Expr) {
	switch n := e.(type) {
	case *ast.Call:
		m.path(n.Name)
	case *ast.Collate:
		m.path(n.Name)
	case *ast.ColumnRef:
		if len(n.Parts) > 2 {
			m.path(n.Parts)
		}
	case *ast.Unary:
		n.Op = m.operator(n.Op)
	case *ast.Binary:
		n.Op = m.operator(n.Op)
	case *ast.Quantified:
		n.Op = m.operator(n.Op)
	case *ast.Cast:
		m.path(n.Type.Name)
		if l, ok := n.X.(*ast.Literal); ok && l.Kind == ast.LiteralString && namesObject(n.Type.Name) {
			l.Value = m.text(l.Value)
		}
	case *ast.Literal:
		if n.Kind == ast.LiteralString && m.isTextSearch(n.Value) {
			n.Value = m.text(n.Value)
		}
	}
}

// namesObject reports whether the constants of a type are names of objects.
func namesObject(typ []string) bool {
	switch typ[len(typ)-1] {
	case "regclass", "regtype", "regproc", "regprocedure", "regoper", "regoperator", "regconfig", "regdictionary", "regcollation":
		return true
	}
	return false
}

// isTextSearch reports whether text is the qualified name of a configuration or a dictionary of the schema.
func (m *schemaRenaming) isTextSearch(text string) bool {
	return slices.ContainsFunc(m.r.TextSearch().All(), func(d *catalog.TextSearchDescriptor) bool {
		return d.Schema == m.from && text == qualifiedText(d.Schema, d.Name)
	})
}

func (m *schemaRenaming) relations(ctx context.Context) error {
	all, err := m.r.Relations(ctx)
	if err != nil {
		return err
	}
	visitor := m.visitor()
	for _, t := range all {
		if t.Kind == catalog.KindVirtual {
			continue
		}
		next := t.Clone()
		m.changed = t.Schema == m.from
		if m.changed {
			next.Schema = m.to
		}
		err := m.mapExpressions(next, func(use typeUse, inspect func(ast.Visitor)) {
			before := m.changed
			m.changed = false
			inspect(visitor)
			if m.changed && use.index != 0 && !slices.Contains(m.indexed, t.ID) {
				m.indexed = append(m.indexed, t.ID)
			}
			m.changed = m.changed || before
		})
		if err != nil {
			return err
		}
		if m.changed {
			if err := m.ch.Update(ctx, t, next, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *schemaRenaming) types(ctx context.Context) error {
	visitor := m.visitor()
	for _, t := range m.r.Types().All() {
		if t.Relation != nil {
			continue // A relation's row type has its schema.
		}
		next := t.Clone()
		m.changed = t.Schema == m.from
		if m.changed {
			next.Schema = m.to
		}
		if t.Kind == types.Domain {
			if err := mapDomain(next, func(_ types.OID, inspect func(ast.Visitor)) { inspect(visitor) }); err != nil {
				return err
			}
		}
		if m.changed {
			if err := m.ch.PutType(ctx, next); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *schemaRenaming) routines(ctx context.Context) error {
	visitor := m.visitor()
	for _, f := range m.r.Routines().All() {
		next := f.Clone()
		m.changed = f.Schema == m.from
		if m.changed {
			next.Schema = m.to
		}
		if err := rewriteRoutine(next, visitor); err != nil {
			return err
		}
		if m.changed {
			if err := m.ch.PutRoutine(ctx, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// others moves collations, operators and their classes, text search objects and extensions.
func (m *schemaRenaming) others(ctx context.Context) error {
	for _, d := range m.r.Collations().All() {
		if d.Schema == m.from {
			next := d.Clone()
			next.Schema = m.to
			if err := m.ch.PutCollation(ctx, next); err != nil {
				return err
			}
		}
	}
	if err := m.operations(ctx); err != nil {
		return err
	}
	for _, d := range m.r.TextSearch().All() {
		if d.Schema == m.from {
			next := d.Clone()
			next.Schema = m.to
			if err := m.ch.PutTextSearch(ctx, next); err != nil {
				return err
			}
		}
	}
	for _, d := range m.r.Extensions().All() {
		if d.Schema == m.from {
			next := *d
			next.Schema = m.to
			if err := m.ch.PutExtension(ctx, &next); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *schemaRenaming) operations(ctx context.Context) error {
	s := m.operationsIn(func(schema string, _ uint32) bool { return schema == m.from })
	for _, d := range s.operators {
		next := d.Clone()
		next.Schema = m.to
		if err := m.ch.PutOperator(ctx, next); err != nil {
			return err
		}
	}
	for _, d := range s.classes {
		next := d.Clone()
		next.Schema = m.to
		if err := m.ch.PutOpClass(ctx, next); err != nil {
			return err
		}
	}
	for _, d := range s.families {
		next := d.Clone()
		next.Schema = m.to
		if err := m.ch.PutOpFamily(ctx, next); err != nil {
			return err
		}
	}
	return nil
}
