package catalog

import (
	"bytes"
	"cmp"
	"context"
	"slices"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/percolator"
)

// schemaSnapshot is the whole schema of a database as of one version. Immutable; safe for concurrent use.
type schemaSnapshot struct {
	catalog    *Catalog
	version    uint64
	database   *DatabaseDescriptor
	databases  *Databases
	schemas    map[string]schemaRecord
	byID       map[uint64]*TableDescriptor
	byName     map[qualifiedName]*TableDescriptor
	list       []*TableDescriptor // by schema and name
	rows       *schemaRows
	stored     map[uint64][]byte // the values that descriptors were read from
	names      []string          // of schemas
	types      *Types
	extensions *Extensions
	routines   *Routines
	textSearch *TextSearch
	collations *Collations
	operations *Operations
	roles      *Roles
	grants     *Grants
}

type qualifiedName struct{ schema, name string }

// The schemas every server has, with PostgreSQL's OIDs.
const (
	PublicSchema      = "public"
	SystemSchema      = "pg_catalog"
	InformationSchema = "information_schema"
	// OwnSchema contains the views of percodb's internal state. Unlike the others it is not stored.
	OwnSchema = "percodb"

	publicOID      = 2200
	systemOID      = 11
	informationOID = 13183
	ownOID         = 13184
)

// defaultPath is searched for unqualified names unless SearchPath is set.
var defaultPath = []string{SystemSchema, PublicSchema}

// newSnapshot makes the schema of a version of its rows. It shares with last, which may be nil, what is the same.
func (c *Catalog) newSnapshot(ctx context.Context, version uint64, r *schemaRows, last *schemaSnapshot) (_ *schemaSnapshot, err error) {
	s := &schemaSnapshot{
		catalog: c, version: version, rows: r, schemas: map[string]schemaRecord{}, stored: map[uint64][]byte{},
		byID: make(map[uint64]*TableDescriptor, len(c.opts.System)), byName: make(map[qualifiedName]*TableDescriptor, len(c.opts.System)),
	}
	if s.databases, err = loadDatabases(ctx, r, last); err != nil {
		return nil, err
	}
	if s.database = s.databases.ByOID(c.database); s.database == nil {
		return nil, ErrNoDatabase
	}
	err = scanSpan(ctx, r, c.space.span(wordSchema), func(key, value []byte) error {
		var rec schemaRecord
		if err := decode(key, value, &rec); err != nil {
			return err
		}
		s.schemas[string(key[len(c.space.schemaKey(""))-1:len(key)-1])] = rec
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.schemas[OwnSchema] = schemaRecord{ID: ownOID}
	for _, t := range c.opts.System {
		s.add(t)
	}
	defined, err := readTypes(ctx, r, c.space, last)
	if err != nil {
		return nil, err
	}
	if s.collations, err = loadCollations(ctx, r, c.space, last); err != nil {
		return nil, err
	}
	if s.extensions, err = loadExtensions(ctx, r, c.space, last); err != nil {
		return nil, err
	}
	err = scanSpan(ctx, r, c.space.span(wordRelation), func(key, value []byte) error {
		return s.addStored(key, value, last)
	})
	if err != nil {
		return nil, err
	}
	if err := s.link(defined, last); err != nil {
		return nil, err
	}
	if s.routines, err = loadRoutines(ctx, r, c.space, s.types, last); err != nil {
		return nil, err
	}
	if s.operations, err = loadOperations(ctx, r, c.space, s.types, s.routines, last); err != nil {
		return nil, err
	}
	if s.textSearch, err = loadTextSearch(ctx, r, c.space, last); err != nil {
		return nil, err
	}
	if s.grants, err = loadGrants(ctx, r, s.database, s.schemas); err != nil {
		return nil, err
	}
	if s.roles, err = loadRoles(ctx, r, last, s.grants.Database.OwnerOID()); err != nil {
		return nil, err
	}
	s.finish(last)
	return s, nil
}

// scan calls f with every pair under a word that names no objects of a database.
func scan(ctx context.Context, r rowReader, word string, f func(key, value []byte) error) error {
	return scanSpan(ctx, r, wordSpan(word), f)
}

// scanSpan calls f with every pair of a span. The slices are f's only until it returns.
func scanSpan(ctx context.Context, r rowReader, span kv.Span, f func(key, value []byte) error) error {
	it := r.Scan(ctx, span, percolator.ScanOptions{})
	defer it.Close()
	for it.Next(ctx) {
		if err := f(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return it.Err()
}

// addStored adds the descriptor in a value, which is a row's of the schema. One that last was made of as well is shared with it, for
// most descriptors stay as they are and reading them is the costly part.
func (s *schemaSnapshot) addStored(key, value []byte, last *schemaSnapshot) error {
	id, err := s.catalog.space.idOfKey(wordRelation, key)
	if err != nil {
		return err
	}
	if last != nil && bytes.Equal(last.stored[id], value) {
		s.stored[id] = last.stored[id]
		s.add(last.byID[id])
		return nil
	}
	t := new(TableDescriptor)
	if err := decode(key, value, t); err != nil {
		return err
	}
	if t.Kind == KindSequence {
		s.catalog.describeSequence(t)
	}
	s.stored[id] = value
	s.add(t)
	return nil
}

func (s *schemaSnapshot) add(t *TableDescriptor) {
	s.byID[t.ID] = t
	s.byName[qualifiedName{t.Schema, t.Name}] = t
}

// finish makes the lists once everything is added. last, which may be nil, has most relations in their order already.
func (s *schemaSnapshot) finish(last *schemaSnapshot) {
	s.list = make([]*TableDescriptor, 0, len(s.byID))
	if last != nil {
		for _, t := range last.list {
			if t = s.byID[t.ID]; t != nil {
				s.list = append(s.list, t)
			}
		}
	}
	for id, t := range s.byID {
		if last == nil || last.byID[id] == nil {
			s.list = append(s.list, t)
		}
	}
	slices.SortFunc(s.list, func(a, b *TableDescriptor) int {
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name))
	})
	for name := range s.schemas {
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
}

// Relation implements Resolver.
func (s *schemaSnapshot) Relation(_ context.Context, schema, name string) (*TableDescriptor, error) {
	if schema != "" {
		return s.byName[qualifiedName{schema, name}], nil
	}
	for _, schema := range defaultPath {
		if t := s.byName[qualifiedName{schema, name}]; t != nil {
			return t, nil
		}
	}
	return nil, nil
}

// RelationByID implements Resolver.
func (s *schemaSnapshot) RelationByID(_ context.Context, id uint64) (*TableDescriptor, error) {
	return s.byID[id], nil
}

// Relations implements Resolver.
func (s *schemaSnapshot) Relations(context.Context) ([]*TableDescriptor, error) { return s.list, nil }

// SchemaExists implements Resolver.
func (s *schemaSnapshot) SchemaExists(_ context.Context, schema string) (bool, error) {
	_, ok := s.schemas[schema]
	return ok, nil
}

// Schemas implements Resolver.
func (s *schemaSnapshot) Schemas(context.Context) ([]string, error) { return s.names, nil }

// Stats implements Resolver.
func (s *schemaSnapshot) Stats(ctx context.Context, tableID uint64) (*TableStats, error) {
	t := s.byID[tableID]
	if t == nil || t.StatsVersion == 0 {
		return &TableStats{}, nil
	}
	return s.catalog.stats.get(ctx, t)
}

// Database implements Resolver.
func (s *schemaSnapshot) Database() *DatabaseDescriptor { return s.database }

// Databases implements Resolver.
func (s *schemaSnapshot) Databases() *Databases { return s.databases }

// Roles implements Resolver.
func (s *schemaSnapshot) Roles() *Roles { return s.roles }

// Types implements Resolver.
func (s *schemaSnapshot) Types() *Types { return s.types }

// Extensions implements Resolver.
func (s *schemaSnapshot) Extensions() *Extensions { return s.extensions }

// Routines implements Resolver.
func (s *schemaSnapshot) Routines() *Routines { return s.routines }

// TextSearch implements Resolver.
func (s *schemaSnapshot) TextSearch() *TextSearch { return s.textSearch }

// Collations implements Resolver.
func (s *schemaSnapshot) Collations() *Collations { return s.collations }

// Operations implements Resolver.
func (s *schemaSnapshot) Operations() *Operations { return s.operations }

// Grants implements Resolver.
func (s *schemaSnapshot) Grants() *Grants { return s.grants }

// Version implements Resolver.
func (s *schemaSnapshot) Version() uint64 { return s.version }

// SchemaDetails is implemented by the catalog's resolvers: what system tables show in addition to descriptors.
type SchemaDetails interface {
	SchemaOID(name string) uint32
	SchemaComment(name string) string
	// SequenceValue returns the value last handed out, or called false if none was.
	SequenceValue(ctx context.Context, t *TableDescriptor) (last int64, called bool, err error)
}

// SchemaOID implements SchemaDetails.
func (s *schemaSnapshot) SchemaOID(name string) uint32 { return uint32(s.schemas[name].ID) }

// SchemaComment implements SchemaDetails.
func (s *schemaSnapshot) SchemaComment(name string) string {
	comment := s.schemas[name].Comment
	if name == PublicSchema && comment == "" { // As every database of PostgreSQL has it.
		return "standard public schema"
	}
	return comment
}

// SequenceValue implements SchemaDetails.
func (s *schemaSnapshot) SequenceValue(ctx context.Context, t *TableDescriptor) (int64, bool, error) {
	return s.catalog.LastVal(ctx, t)
}

// inPath is a resolver with another search path.
type inPath struct {
	Resolver
	path []string
	// local are found by their bare names before all others.
	local []*TableDescriptor
	// stored: it is for what the catalog holds (ForStored).
	stored bool
}

// WithLocal returns r with relations that their bare names find before all others.
func WithLocal(r Resolver, local ...*TableDescriptor) Resolver {
	if p, ok := r.(*inPath); ok {
		return &inPath{Resolver: p.Resolver, path: p.path, local: local, stored: p.stored}
	}
	return &inPath{Resolver: r, path: defaultPath, local: local}
}

// SearchPath returns r with unqualified names looked up in path, in order, pg_catalog before all
// others unless path names it. Its Version is that of r: caches must add the path to their key.
func SearchPath(r Resolver, path []string) Resolver {
	if !slices.Contains(path, SystemSchema) {
		path = append([]string{SystemSchema}, path...)
	}
	return &inPath{Resolver: r, path: path}
}

// Relation implements Resolver.
func (p *inPath) Relation(ctx context.Context, schema, name string) (*TableDescriptor, error) {
	if schema != "" {
		return p.Resolver.Relation(ctx, schema, name)
	}
	for _, t := range p.local {
		if t.Name == name {
			return t, nil
		}
	}
	if w, ok := p.Resolver.(*withTemporary); ok && !slices.Contains(p.path, TemporarySchema) {
		if t := w.named(name); t != nil {
			return t, nil
		}
	}
	for _, schema := range p.path {
		if t, err := p.Resolver.Relation(ctx, schema, name); t != nil || err != nil {
			return t, err
		}
	}
	return nil, nil
}

// RelationByID implements Resolver.
func (p *inPath) RelationByID(ctx context.Context, id uint64) (*TableDescriptor, error) {
	for _, t := range p.local {
		if t.ID == id {
			return t, nil
		}
	}
	return p.Resolver.RelationByID(ctx, id)
}

// SchemaOID implements SchemaDetails.
func (p *inPath) SchemaOID(name string) uint32 {
	if d, ok := p.Resolver.(SchemaDetails); ok {
		return d.SchemaOID(name)
	}
	return 0
}

// SchemaComment implements SchemaDetails.
func (p *inPath) SchemaComment(name string) string {
	if d, ok := p.Resolver.(SchemaDetails); ok {
		return d.SchemaComment(name)
	}
	return ""
}

// SequenceValue implements SchemaDetails.
func (p *inPath) SequenceValue(ctx context.Context, t *TableDescriptor) (int64, bool, error) {
	if d, ok := p.Resolver.(SchemaDetails); ok {
		return d.SequenceValue(ctx, t)
	}
	return t.Sequence.Start, false, nil
}

// Path returns the schemas that r searches for unqualified names, in order.
func Path(r Resolver) []string {
	if p, ok := r.(*inPath); ok {
		return p.path
	}
	return defaultPath
}

// FindIndex finds a secondary or declared primary index by name; schema "" searches the path.
func FindIndex(ctx context.Context, r Resolver, schema, name string) (*TableDescriptor, *IndexDescriptor, error) {
	all, err := r.Relations(ctx)
	if err != nil {
		return nil, nil, err
	}
	schemas := []string{schema}
	if schema == "" {
		schemas = Path(r)
		if !slices.Contains(schemas, TemporarySchema) {
			schemas = append([]string{TemporarySchema}, schemas...)
		}
	}
	for _, schema := range schemas {
		for _, t := range all {
			if t.Schema != schema && !(schema == TemporarySchema && t.Temporary()) || t.Kind != KindTable {
				continue
			}
			if ix := t.IndexNamed(name); ix != nil {
				return t, ix, nil
			}
		}
	}
	return nil, nil, nil
}

// NamedConstraint is a constraint that SET CONSTRAINTS can name.
type NamedConstraint struct {
	OID        uint32
	Deferrable bool
}

// ConstraintsNamed lists the constraints of tables of that name in a schema; schema "" means the first schema of the path that has one.
func ConstraintsNamed(ctx context.Context, r Resolver, schema, name string) ([]NamedConstraint, error) {
	all, err := r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	schemas := []string{schema}
	if schema == "" {
		schemas = Path(r)
	}
	for _, schema := range schemas {
		var found []NamedConstraint
		for _, t := range all {
			if t.Schema != schema || t.Kind != KindTable {
				continue
			}
			if ix := t.IndexNamed(name); ix != nil && ix.Constraint {
				found = append(found, NamedConstraint{OID: ix.OID, Deferrable: ix.Deferrable})
			}
			for i := range t.Checks {
				if t.Checks[i].Name == name {
					found = append(found, NamedConstraint{OID: t.Checks[i].OID})
				}
			}
			if g := t.TriggerNamed(name); g != nil && g.Constraint {
				found = append(found, NamedConstraint{OID: g.OID, Deferrable: g.Deferrable})
			}
			if k := t.ForeignKeyNamed(name); k != nil {
				found = append(found, NamedConstraint{OID: k.OID, Deferrable: k.Deferrable})
			}
		}
		if len(found) > 0 {
			return withInherited(found, all), nil
		}
	}
	return nil, nil
}

// withInherited adds the constraints of partitions that belong to constraints of partitioned tables.
func withInherited(found []NamedConstraint, all []*TableDescriptor) []NamedConstraint {
	above := map[uint32][]NamedConstraint{}
	for _, t := range all {
		if !t.IsPartition() {
			continue
		}
		for i := range t.Indexes {
			above[t.Indexes[i].Parent] = append(above[t.Indexes[i].Parent], NamedConstraint{t.Indexes[i].OID, t.Indexes[i].Deferrable})
		}
		for i := range t.ForeignKeys {
			k := &t.ForeignKeys[i]
			above[k.Inherited] = append(above[k.Inherited], NamedConstraint{k.OID, k.Deferrable})
		}
		for i := range t.Triggers {
			g := &t.Triggers[i]
			above[g.Inherited] = append(above[g.Inherited], NamedConstraint{g.OID, g.Deferrable})
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, above[found[i].OID]...)
	}
	return found
}
