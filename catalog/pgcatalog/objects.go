package pgcatalog

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Objects implements the functions and types that refer to objects by OID, with the resolver in
// force at the time of the call. It belongs to one session.
type Objects struct {
	// Resolver returns the session's resolver, nil before there is one.
	Resolver func() catalog.Resolver
	// Role returns the OID of the current role.
	Role func() uint32
	// Present returns the schema in force of a database; nil: others than that of Resolver are not known.
	Present func(ctx context.Context, database uint32) (catalog.Resolver, error)
	// ViewText is the query of a view as clients are shown it.
	ViewText func(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor, pretty bool, wrap int) (string, error)
	// ExprText is that of catalog.SystemView.
	ExprText func(ctx context.Context, r catalog.Resolver, e catalog.StoredExpr, pretty bool) (string, error)
	// UpdatesOf is that of catalog.SystemView.
	UpdatesOf func(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor, triggers bool, column int) (catalog.Updates, error)
	// View is what the session knows beside its catalog; nil: nothing.
	View catalog.SystemView
}

var _ builtin.Catalog = (*Objects)(nil)

// The resolver's answers come from memory: no context is needed to wait with.
func background() context.Context { return context.Background() }

// relation finds a relation by OID; nil if there is none.
func (o *Objects) relation(id types.OID) (catalog.Resolver, *catalog.TableDescriptor) {
	r := o.Resolver()
	if r == nil {
		return nil, nil
	}
	t, err := r.RelationByID(background(), uint64(id))
	if err != nil {
		return r, nil
	}
	return r, t
}

// index finds an index by OID.
func (o *Objects) index(id types.OID) (r catalog.Resolver, t *catalog.TableDescriptor, ix *catalog.IndexDescriptor) {
	if r = o.Resolver(); r == nil {
		return nil, nil, nil
	}
	all, err := r.Relations(background())
	if err != nil {
		return r, nil, nil
	}
	for _, t := range all {
		for _, ix := range visibleIndexes(t) {
			if ix.OID == uint32(id) {
				return r, t, ix
			}
		}
	}
	return r, nil, nil
}

// RelationName implements types.Names.
func (o *Objects) RelationName(id types.OID) (string, bool) {
	if r, t := o.relation(id); t != nil {
		return relationName(background(), r, t), true
	}
	if r, t, ix := o.index(id); ix != nil {
		if visible(r, t.Schema) {
			return keyword.QuoteIdent(ix.Name), true
		}
		return keyword.QuoteIdent(t.Schema) + "." + keyword.QuoteIdent(ix.Name), true
	}
	if d := o.composite(id); d != nil {
		return o.TypeName(types.OID(d.ID))
	}
	return "", false
}

// composite returns the composite type with a number in pg_class.
func (o *Objects) composite(id types.OID) *catalog.TypeDescriptor {
	for _, d := range o.types().All() {
		if d.RelationID == uint64(id) && id != 0 {
			return d
		}
	}
	return nil
}

// visible reports whether a schema is on the search path.
func visible(r catalog.Resolver, schema string) bool {
	return slices.Contains(catalog.Path(r), schema) || catalog.IsTemporary(schema) // No session sees another's.
}

// RelationOID implements types.Names.
func (o *Objects) RelationOID(name string) (types.OID, error) {
	schema, rel, err := SplitName(name)
	if err != nil {
		return 0, err
	}
	if r := o.Resolver(); r != nil {
		if schema != "" && o.Role != nil {
			if _, exists := r.Grants().Schemas[schema]; exists && catalog.NewAccess(r, o.Role()).Schema(schema, acl.Usage) == 0 {
				return 0, pgerror.New(pgerror.InsufficientPrivilege, "permission denied for schema %s", schema)
			}
		}
		t, err := r.Relation(background(), schema, rel)
		if err != nil {
			return 0, err
		}
		if t != nil {
			return types.OID(t.OID()), nil
		}
		_, ix, err := catalog.FindIndex(background(), r, schema, rel)
		if err != nil {
			return 0, err
		}
		if ix != nil {
			return types.OID(ix.OID), nil
		}
		if d := catalog.FindType(r, schema, rel); d.IsComposite() {
			return types.OID(r.Types().ByOID(d.OID).RelationID), nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", name)
}

// SplitName takes a possibly qualified, possibly quoted name apart.
func SplitName(name string) (schema, rel string, err error) {
	var parts []string
	rest := strings.TrimSpace(name)
	for {
		part, after, ok := takeName(rest)
		if !ok {
			return "", "", pgerror.New(pgerror.InvalidName, "invalid name syntax")
		}
		parts = append(parts, part)
		if after == "" {
			break
		}
		rest = after[1:]
	}
	switch len(parts) {
	case 1:
		return "", parts[0], nil
	case 2:
		return parts[0], parts[1], nil
	case 3:
		return parts[1], parts[2], nil
	}
	return "", "", pgerror.New(pgerror.InvalidName, "improper relation name (too many dotted names): %s", name)
}

// takeName takes the first part off a dotted name; after is "" or starts with the dot.
func takeName(s string) (part, after string, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexByte(s, '.')
		if end < 0 {
			end = len(s)
		}
		return strings.ToLower(s[:end]), s[end:], end > 0 && !strings.ContainsAny(s[:end], `" `)
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '"':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '"':
			b.WriteByte('"')
			i++
		default:
			after = s[i+1:]
			return b.String(), after, b.Len() > 0 && (after == "" || after[0] == '.')
		}
	}
	return "", "", false
}

// RelationVisible implements builtin.Catalog.
func (o *Objects) RelationVisible(id types.OID) (is, ok bool) {
	if r, t := o.relation(id); t != nil {
		found, err := r.Relation(background(), "", t.Name)
		return err == nil && found != nil && found.ID == t.ID, true
	}
	if r, t, ix := o.index(id); ix != nil {
		return visible(r, t.Schema), true
	}
	if d := o.composite(id); d != nil {
		return o.TypeVisible(types.OID(d.ID))
	}
	return false, false
}

// ViewDefinition implements builtin.Catalog.
func (o *Objects) ViewDefinition(id types.OID, pretty bool, wrap int) (string, bool) {
	r, t := o.relation(id)
	if t == nil || t.ViewQuery == "" {
		return "", false
	}
	text, err := o.ViewText(background(), r, t, pretty, wrap)
	return text, err == nil
}

// IndexDefinition implements builtin.Catalog.
func (o *Objects) IndexDefinition(id types.OID, column int, pretty bool) (string, bool) {
	r, t, ix := o.index(id)
	if ix == nil {
		return "", false
	}
	if column == 0 {
		return o.printer(r).indexDefinition(t, ix, pretty), true
	}
	ids := indexColumnIDs(ix)
	if column < 0 || column > len(ids) {
		return "", true
	}
	return o.printer(r).keyDefinition(t, ids[column-1], pretty), true
}

// IndexKey implements builtin.Catalog.
func (o *Objects) IndexKey(id types.OID) []int64 {
	_, t, ix := o.index(id)
	if ix == nil {
		return nil
	}
	return indexKey(t, ix)
}

// ConstraintDefinition implements builtin.Catalog.
func (o *Objects) ConstraintDefinition(id types.OID, pretty bool) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	all, err := r.Relations(background())
	if err != nil {
		return "", false
	}
	for _, d := range r.Types().All() {
		for i := range d.Checks {
			if d.Checks[i].OID == id {
				return o.printer(r).domainConstraintDefinition(r.Types().Complete(d.Parent), &d.Checks[i], pretty), true
			}
		}
	}
	for _, t := range all {
		own, err := constraints(background(), r, t)
		if err != nil {
			return "", false
		}
		for _, c := range own {
			if c.oid == uint32(id) {
				return o.printer(r).constraintDefinition(t, c, pretty), true
			}
		}
	}
	return "", false
}

// PrettyExpr implements builtin.Catalog.
func (o *Objects) PrettyExpr(text string, relation types.OID) string {
	r := o.Resolver()
	if r == nil || o.ExprText == nil {
		return text
	}
	e := catalog.StoredExpr{Text: text}
	if _, e.Table = o.relation(relation); e.Table != nil {
		// A default is cast to the type of its column, which shows in what is within parentheses.
		for i := range e.Table.Columns {
			if c := &e.Table.Columns[i]; (c.Default != "" || c.Generated != "") && o.printer(r).defaultText(e.Table, c, false) == text {
				return o.printer(r).defaultText(e.Table, c, true)
			}
		}
	}
	return o.printer(r).text(e, text, true)
}

// constraint finds a constraint of a table.
func (o *Objects) constraint(id types.OID) (constraint, bool) {
	r := o.Resolver()
	if r == nil {
		return constraint{}, false
	}
	all, err := r.Relations(background())
	if err != nil {
		return constraint{}, false
	}
	for _, t := range all {
		own, err := constraints(background(), r, t)
		if err != nil {
			return constraint{}, false
		}
		for _, c := range own {
			if c.oid == uint32(id) {
				return c, true
			}
		}
	}
	return constraint{}, false
}

// Comment implements builtin.Catalog.
func (o *Objects) Comment(id types.OID, class string, column int) (string, bool) {
	if class == "" || class == "pg_class" {
		if _, t := o.relation(id); t != nil {
			return columnComment(t, column)
		}
		if _, _, ix := o.index(id); ix != nil && column == 0 {
			return ix.Comment, ix.Comment != ""
		}
	}
	if class == "" || class == "pg_type" {
		if d := o.types().ByOID(id); d != nil && id == types.OID(d.ID) {
			return d.Comment, d.Comment != ""
		}
	}
	if d := o.userRoutine(id); d != nil && (class == "" || class == "pg_proc") {
		return d.Comment, d.Comment != ""
	}
	if comment, ok := o.operationComment(id, class); ok {
		return comment, comment != ""
	}
	if comment, ok := o.userTextSearchComment(id, class); ok {
		return comment, comment != ""
	}
	if class == "" || class == "pg_collation" {
		if comment, ok := o.collationComment(id); ok || class != "" {
			return comment, ok
		}
	}
	if class == "" || class == "pg_constraint" {
		for _, d := range o.types().All() {
			for i := range d.Checks {
				if c := &d.Checks[i]; c.OID == id {
					return c.Comment, c.Comment != ""
				}
			}
		}
		if c, found := o.constraint(id); found {
			return c.comment(), c.comment() != ""
		}
	}
	if class == "" || class == "pg_namespace" {
		if comment, ok := o.schemaComment(id); ok || class != "" {
			return comment, ok
		}
	}
	if class == "" || class == "pg_extension" {
		if comment, ok := o.extensionComment(id); ok {
			return comment, true
		}
	}
	if class == "" || class == "pg_trigger" {
		if comment, ok := o.triggerComment(id); ok {
			return comment, true
		}
	}
	if class == "" || class == "pg_policy" {
		if r := o.Resolver(); r != nil {
			if _, p, err := catalog.FindPolicy(background(), r, uint32(id)); err == nil && p != nil {
				return p.Comment, p.Comment != ""
			}
		}
	}
	if class == "pg_database" {
		return o.databaseComment(id)
	}
	if comment, ok := builtinComment(id, class); ok {
		return comment, true
	}
	if class == "pg_authid" {
		if role := o.roles().ByOID(uint32(id)); role != nil {
			return role.Comment, role.Comment != ""
		}
	}
	return "", false
}

func columnComment(t *catalog.TableDescriptor, column int) (string, bool) {
	if column == 0 {
		return t.Comment, t.Comment != ""
	}
	ord := t.Ordinal(uint32(column))
	if ord < 0 {
		return "", false
	}
	return t.Columns[ord].Comment, t.Columns[ord].Comment != ""
}

// SchemaName implements types.Names.
func (o *Objects) SchemaName(id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	names, err := r.Schemas(background())
	if err != nil {
		return "", false
	}
	for _, name := range names {
		if schemaOID(r, name) == uint32(id) {
			return keyword.QuoteIdent(name), true
		}
	}
	return "", false
}

// SchemaOID implements types.Names.
func (o *Objects) SchemaOID(name string) (types.OID, error) {
	_, schema, err := SplitName(name)
	if err != nil {
		return 0, err
	}
	if r := o.Resolver(); r != nil {
		if ok, err := r.SchemaExists(background(), schema); ok || err != nil {
			return types.OID(schemaOID(r, schema)), err
		}
	}
	return 0, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", schema)
}

func (o *Objects) types() *catalog.Types {
	if r := o.Resolver(); r != nil {
		return r.Types()
	}
	return catalog.NewTypes()
}

// TypeVisible implements builtin.Catalog.
func (o *Objects) TypeVisible(id types.OID) (visible, ok bool) {
	t := types.Type{OID: id, Mod: -1}
	if t.Info() != nil {
		return true, true
	}
	if t = o.types().Complete(t); t.Def == nil {
		return false, false
	}
	return catalog.FindType(o.Resolver(), "", t.Info().Name).OID == id, true
}

// TypeName implements types.Names.
func (o *Objects) TypeName(id types.OID) (string, bool) {
	return typeName(o.Resolver(), id)
}

// typeName is the name of a type of a user or an extension, with its schema unless the search path finds it; false if there is none.
func typeName(r catalog.Resolver, id types.OID) (string, bool) {
	if r == nil || id < types.FirstUserOID {
		return "", false
	}
	d := r.Types().ByOID(id)
	if d == nil {
		return extensionTypeName(r, id)
	}
	name := keyword.QuoteIdent(d.Name)
	if found := catalog.FindType(r, "", d.Name); found.OID != types.OID(d.ID) {
		name = keyword.QuoteIdent(d.Schema) + "." + name
	}
	if id == types.OID(d.ArrayID) {
		name += "[]"
	}
	return name, true
}

// TypeNamed implements types.Names.
func (o *Objects) TypeNamed(name string) (types.Type, error) {
	schema, bare, err := SplitName(name)
	if err != nil {
		return types.Type{}, err
	}
	r := o.Resolver()
	if r == nil {
		return types.Type{}, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", name)
	}
	if schema != "" {
		if ok, err := r.SchemaExists(background(), schema); err != nil || !ok {
			if err == nil {
				err = pgerror.New(pgerror.InvalidSchemaName, "schema \"%s\" does not exist", schema)
			}
			return types.Type{}, err
		}
	}
	if t := catalog.FindType(r, schema, bare); t.Valid() {
		return t, nil
	}
	return types.Type{}, pgerror.New(pgerror.UndefinedObject, "type \"%s\" does not exist", name)
}

func (o *Objects) databaseComment(id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	d := r.Databases().ByOID(uint32(id))
	if d == nil {
		return "", false
	}
	return d.Comment, d.Comment != ""
}

func (o *Objects) schemaComment(id types.OID) (string, bool) {
	d, ok := o.Resolver().(catalog.SchemaDetails)
	if !ok {
		return "", false
	}
	names, err := o.Resolver().Schemas(background())
	if err != nil {
		return "", false
	}
	for _, name := range names {
		if d.SchemaOID(name) == uint32(id) {
			return d.SchemaComment(name), d.SchemaComment(name) != ""
		}
	}
	return "", false
}

// RelationSize implements builtin.Catalog: a guess from statistics.
func (o *Objects) RelationSize(ctx context.Context, id types.OID, withIndexes bool) (int64, error) {
	r, t := o.relation(id)
	if t == nil {
		return 0, nil
	}
	return relationSize(ctx, r, t, withIndexes)
}

func relationSize(ctx context.Context, r catalog.Resolver, t *catalog.TableDescriptor, withIndexes bool) (int64, error) {
	stats, err := r.Stats(ctx, t.ID)
	if err != nil {
		return 0, err
	}
	size := estimateBytes(t, stats)
	if withIndexes {
		size += size / 4 * int64(len(t.Indexes))
	}
	return size, nil
}

// DatabaseSize implements builtin.Catalog.
func (o *Objects) DatabaseSize(ctx context.Context, q builtin.DatabaseQuery) (size int64, known bool, err error) {
	r := o.Resolver()
	if r == nil {
		return 0, false, nil
	}
	d := r.Databases().ByOID(uint32(q.OID))
	switch {
	case q.Current:
		d = r.Database()
	case q.Name != "":
		if d = r.Databases().Named(q.Name); d == nil {
			return 0, false, pgerror.New(pgerror.InvalidCatalogName, "database %q does not exist", q.Name)
		}
	}
	if d == nil || d.OID != r.Database().OID && o.Present == nil {
		return 0, false, nil
	}
	if d.OID != r.Database().OID {
		if r, err = o.Present(ctx, d.OID); err != nil {
			return 0, false, err
		}
	}
	size, err = databaseSize(ctx, r)
	return size, true, err
}

func databaseSize(ctx context.Context, r catalog.Resolver) (int64, error) {
	all, err := r.Relations(ctx)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, t := range all {
		if t.Kind != catalog.KindTable {
			continue
		}
		size, err := relationSize(ctx, r, t, true)
		if err != nil {
			return 0, err
		}
		sum += size
	}
	return sum, nil
}

// SerialSequence implements builtin.Catalog.
func (o *Objects) SerialSequence(table, column string) (string, bool, error) {
	id, err := o.RelationOID(table)
	if err != nil {
		return "", false, err
	}
	r, t := o.relation(id)
	if t == nil {
		return "", false, pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", table)
	}
	ord := t.ColumnNamed(column)
	if ord < 0 {
		return "", false, pgerror.New(pgerror.UndefinedColumn, "column %q of relation %q does not exist", column, t.Name)
	}
	seq, err := r.RelationByID(background(), t.Columns[ord].Sequence)
	if err != nil || seq == nil {
		return "", false, err
	}
	return keyword.QuoteIdent(seq.Schema) + "." + keyword.QuoteIdent(seq.Name), true, nil
}
