package catalog

import "context"

// Resolver finds schema objects as of one transaction's snapshot. Not found is (nil, nil).
// Descriptors belong to the catalog and must not be changed.
type Resolver interface {
	// Relation finds a relation by name; schema "" searches the search path.
	Relation(ctx context.Context, schema, name string) (*TableDescriptor, error)
	// RelationByID finds a relation by id.
	RelationByID(ctx context.Context, id uint64) (*TableDescriptor, error)
	// Relations lists all relations, ordered by schema and name.
	Relations(ctx context.Context) ([]*TableDescriptor, error)
	// SchemaExists reports whether a schema exists.
	SchemaExists(ctx context.Context, schema string) (bool, error)
	// Schemas lists the schemas' names.
	Schemas(ctx context.Context) ([]string, error)
	// Stats returns the statistics of a table; never nil.
	Stats(ctx context.Context, tableID uint64) (*TableStats, error)
	// Database returns the database whose schema it is, Databases all; never nil.
	Database() *DatabaseDescriptor
	Databases() *Databases
	// Roles returns the roles; never nil.
	Roles() *Roles
	// Grants returns the owners and privileges of the database and of schemas; never nil.
	Grants() *Grants
	// Types returns the user-defined types; never nil.
	Types() *Types
	// Extensions returns the installed extensions; never nil.
	Extensions() *Extensions
	// Routines returns the routines that users have defined; never nil.
	Routines() *Routines
	// TextSearch returns the text search objects that users have defined; never nil.
	TextSearch() *TextSearch
	// Collations returns the collations that users have created; never nil.
	Collations() *Collations
	// Operations returns the operators, casts, operator classes and families that users have defined; never nil.
	Operations() *Operations
	// Version identifies the state of the whole schema; equal versions mean equal answers.
	Version() uint64
}
