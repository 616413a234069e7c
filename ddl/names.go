package ddl

import (
	"context"
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// maxNameBytes is the longest name PostgreSQL keeps (NAMEDATALEN - 1).
const maxNameBytes = 63

// SQLSTATEs that only schema changes answer with.
const (
	duplicateSchema         pgerror.Code = "42P06"
	invalidObjectDefinition pgerror.Code = "42P17"
)

// objectName derives a name as PostgreSQL's makeObjectName does: first_second_label, the longer of the
// first two cut until it fits.
func objectName(first, second, label string) string {
	overhead := 0
	if second != "" {
		overhead++
	}
	if label != "" {
		overhead += len(label) + 1
	}
	n1, n2 := len(first), len(second)
	for n1+n2 > maxNameBytes-overhead {
		if n1 > n2 {
			n1--
		} else {
			n2--
		}
	}
	name := clipRunes(first, n1)
	if second != "" {
		name += "_" + clipRunes(second, n2)
	}
	if label != "" {
		name += "_" + label
	}
	return name
}

// clipRunes cuts s to at most n bytes, between characters.
func clipRunes(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// joinColumns makes the middle part of a derived index name.
func joinColumns(names []string) string {
	var b strings.Builder
	for _, name := range names {
		if b.Len() >= maxNameBytes {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('_')
		}
		b.WriteString(name)
	}
	return b.String()
}

// chooseName derives an unused name: with label, label1, label2 ….
func chooseName(first, second, label string, taken func(string) bool) string {
	for i := 0; ; i++ {
		l := label
		if i > 0 {
			l += strconv.Itoa(i)
		}
		if name := objectName(first, second, l); !taken(name) {
			return name
		}
	}
}

// relationTaken returns a function that reports whether a name is used by a relation or index of a schema, or in
// pending.
func (r *run) relationTaken(ctx context.Context, schema string, pending map[string]bool) (func(string) bool, error) {
	all, err := r.r.Relations(ctx)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, t := range all {
		if t.Schema != schema {
			continue
		}
		taken[t.Name] = true
		if t.Primary.Name != "" {
			taken[t.Primary.Name] = true
		}
		for i := range t.Indexes {
			taken[t.Indexes[i].Name] = true
		}
		for i := range t.Builds {
			taken[t.Builds[i].Index.Name] = true
		}
	}
	return func(name string) bool { return taken[name] || pending[name] }, nil
}

// nameTaken reports whether a relation or index of that name exists in the schema.
func (r *run) nameTaken(ctx context.Context, schema, name string) (bool, error) {
	taken, err := r.relationTaken(ctx, schema, nil)
	if err != nil {
		return false, err
	}
	return taken(name), nil
}

func relationExists(name string) *pgerror.Error {
	return pgerror.New(pgerror.DuplicateTable, "relation %q already exists", name)
}

// displayName is the name as written, for messages.
func displayName(n ast.TableName) string {
	if n.Schema != "" {
		return n.Schema + "." + n.Name
	}
	return n.Name
}

// targetSchema returns the schema in which a new relation of that name goes.
func (r *run) targetSchema(ctx context.Context, n ast.TableName) (string, error) {
	if n.Schema != "" {
		if catalog.IsTemporary(n.Schema) {
			return r.temporarySchema(n)
		}
		if err := r.requireSchema(ctx, n.Schema, n); err != nil {
			return "", err
		}
		return n.Schema, r.useSchema(n)
	}
	for _, schema := range r.path {
		if schema == catalog.TemporarySchema {
			return r.temporarySchema(n)
		}
		if systemSchema(schema) {
			continue
		}
		if ok, err := r.r.SchemaExists(ctx, schema); ok || err != nil {
			return schema, err
		}
	}
	return "", pgerror.New(pgerror.InvalidSchemaName, "no schema has been selected to create in").At(n.Position())
}

// permanentSchema is targetSchema for an object that is no relation: the schema of temporary objects has none. It would outlive the session, and be found by
// another one that gets a schema of the same name.
func (r *run) permanentSchema(ctx context.Context, n ast.TableName) (string, error) {
	schema, err := r.targetSchema(ctx, n)
	if err == nil && catalog.IsTemporary(schema) {
		err = pgerror.Unsupported("Such an object in the schema of temporary objects", "Create it in another schema.").At(n.Position())
	}
	return schema, err
}

func (r *run) requireSchema(ctx context.Context, schema string, n ast.TableName) error {
	ok, err := r.r.SchemaExists(ctx, schema)
	if err != nil {
		return err
	}
	if !ok {
		return pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", schema).At(n.Position())
	}
	if systemSchema(schema) {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to create %q", displayName(n)).
			WithDetail("System catalog modifications are currently disallowed.")
	}
	return nil
}

func systemSchema(name string) bool {
	return name == catalog.SystemSchema || name == catalog.InformationSchema || name == catalog.OwnSchema
}

// find looks up a relation; nil if there is none.
func (r *run) find(ctx context.Context, n ast.TableName) (*catalog.TableDescriptor, error) {
	if err := r.useSchema(n); err != nil {
		return nil, err
	}
	return r.r.Relation(ctx, n.Schema, n.Name)
}

// mustFind looks up a relation and fails if there is none.
func (r *run) mustFind(ctx context.Context, n ast.TableName) (*catalog.TableDescriptor, error) {
	t, err := r.find(ctx, n)
	if err == nil && t == nil {
		err = pgerror.New(pgerror.UndefinedTable, "relation %q does not exist", displayName(n)).At(n.Position())
	}
	return t, err
}

// mustFindTable looks up an ordinary table.
func (r *run) mustFindTable(ctx context.Context, n ast.TableName) (*catalog.TableDescriptor, error) {
	t, err := r.mustFind(ctx, n)
	if err != nil {
		return nil, err
	}
	return t, requireTable(t, n)
}

func requireTable(t *catalog.TableDescriptor, n ast.TableName) error {
	if t.Kind == catalog.KindTable && !t.Materialized {
		return nil
	}
	if t.Kind == catalog.KindVirtual {
		return permissionDenied(t.Name)
	}
	return pgerror.New(pgerror.WrongObjectType, "%q is not a table", t.Name).At(n.Position())
}

func permissionDenied(name string) *pgerror.Error {
	return pgerror.New(pgerror.InsufficientPrivilege, "permission denied: %q is a system catalog", name)
}

// kindWord names the kind of a relation as messages do.
func kindWord(t *catalog.TableDescriptor) string {
	switch t.Kind {
	case catalog.KindView:
		return "view"
	case catalog.KindSequence:
		return "sequence"
	}
	if t.Materialized {
		return "materialized view"
	}
	return "table"
}
