package session

import (
	"context"
	"slices"

	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// invalidSchemaDefinition is the SQLSTATE of elements that belong to another schema.
const invalidSchemaDefinition = pgerror.Code("42P15")

// createSchema is CREATE SCHEMA with the objects in it. Its statements share a transaction; they find and create what they name without a schema in the
// new one, and what they create belongs to its owner. Their order is PostgreSQL's: by kinds, as written within one.
func (c *schemaCommands) createSchema(ctx context.Context, n *ast.CreateSchema, w ResultWriter) (Tag, error) {
	if n.IfNotExists {
		return Tag{}, pgerror.New(pgerror.FeatureNotSupported, "CREATE SCHEMA IF NOT EXISTS cannot include schema elements")
	}
	elements := slices.Clone(n.Elements)
	for _, e := range elements {
		if err := requireWithin(n.Name, e); err != nil {
			return Tag{}, err
		}
	}
	slices.SortStableFunc(elements, func(a, b ast.Statement) int { return elementRank(a) - elementRank(b) })
	if !c.tx.phase.shared() && c.tx.pipeline.executed <= 1 {
		c.tx.forgetUnused()
		c.tx.phase.on(share)
	}
	schema := *n
	schema.Elements = nil
	tag, err := c.run(ctx, &schema, w)
	if err != nil {
		return tag, err
	}
	if err := c.tx.begin(ctx); err != nil {
		return Tag{}, err
	}
	owned := c.tx.resolver.Grants().Schemas[n.Name]
	c.within = &newSchema{name: n.Name, owner: owned.OwnerOID()}
	defer func() { c.within = nil }()
	for _, e := range elements {
		if _, err := c.run(ctx, e, w); err != nil {
			return Tag{}, err
		}
	}
	return tag, nil
}

// newSchema is a schema whose elements are being created.
type newSchema struct {
	name  string
	owner uint32
}

// requireWithin fails for an element that names another schema than that which is created.
func requireWithin(schema string, e ast.Statement) error {
	var name ast.TableName
	switch e := e.(type) {
	case *ast.CreateTable:
		if e.Persistence == ast.Temporary {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema").At(e.Name.Position())
		}
		name = e.Name
	case *ast.CreateView:
		if e.Persistence == ast.Temporary {
			return pgerror.New(pgerror.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema").At(e.Name.Position())
		}
		name = e.Name
	case *ast.CreateSequence:
		name = e.Name
	case *ast.CreateIndex:
		name = e.Table
	}
	if name.Schema != "" && name.Schema != schema {
		return pgerror.New(invalidSchemaDefinition, "CREATE specifies a schema (%s) different from the one being created (%s)", name.Schema, schema)
	}
	return nil
}

func elementRank(e ast.Statement) int {
	switch e.(type) {
	case *ast.CreateSequence:
		return 0
	case *ast.CreateTable:
		return 1
	case *ast.CreateView:
		return 2
	case *ast.CreateIndex:
		return 3
	case *ast.CreateTrigger:
		return 4
	}
	return 5
}
