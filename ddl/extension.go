package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// createExtension is CREATE EXTENSION.
func (r *run) createExtension(ctx context.Context, n *ast.CreateExtension) error {
	if err := checkExtensionName(n.Name); err != nil {
		return err
	}
	if r.r.Extensions().Named(n.Name) != nil {
		if n.IfNotExists {
			r.notice(pgerror.DuplicateObject, "extension %q already exists, skipping", n.Name)
			return nil
		}
		return pgerror.New(pgerror.DuplicateObject, "extension %q already exists", n.Name)
	}
	options, err := extensionOptions(n)
	if err != nil {
		return err
	}
	e := builtin.ExtensionNamed(n.Name)
	if e == nil {
		return noExtension(n.Name)
	}
	if version, given := options["VERSION"]; given && version != e.Version {
		return pgerror.New(pgerror.InvalidParameterValue,
			"extension %q has no installation script nor update path for version %q", e.Name, version)
	}
	schema, err := r.extensionSchema(ctx, options["SCHEMA"])
	if err != nil {
		return err
	}
	if !r.access.Superuser() && r.access.Database(acl.Create) == 0 {
		return pgerror.New(pgerror.InsufficientPrivilege, "permission denied to create extension %q", e.Name).
			WithHint("Must have CREATE privilege on current database to create this extension.")
	}
	if err := r.extensionFits(ctx, e, schema); err != nil {
		return err
	}
	id, err := r.ch.NewID(ctx)
	if err != nil {
		return err
	}
	d := &catalog.ExtensionDescriptor{ID: id, Name: e.Name, Schema: schema, Version: e.Version, Owner: r.User, Comment: e.Comment}
	return r.putExtension(ctx, d)
}

func (r *run) putExtension(ctx context.Context, d *catalog.ExtensionDescriptor) error {
	if err := r.ch.PutExtension(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// extensionOptions returns the options by their words; each may be given once.
func extensionOptions(n *ast.CreateExtension) (map[string]string, error) {
	options := map[string]string{}
	for _, o := range n.Options {
		if _, twice := options[o.Kind]; twice {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(int(o.Pos))
		}
		options[o.Kind] = o.Value
	}
	return options, nil
}

// checkExtensionName refuses names that cannot be those of an extension's files.
func checkExtensionName(name string) error {
	detail := ""
	switch {
	case name == "":
		detail = "Extension names must not be empty."
	case strings.Contains(name, "--"):
		detail = "Extension names must not contain \"--\"."
	case name[0] == '-' || name[len(name)-1] == '-':
		detail = "Extension names must not begin or end with \"-\"."
	case strings.ContainsAny(name, "/\\"):
		detail = "Extension names must not contain directory separator characters."
	default:
		return nil
	}
	return pgerror.New(pgerror.InvalidParameterValue, "invalid extension name: %q", name).WithDetail("%s", detail)
}

// noExtension is the error for an extension that percodb does not have.
func noExtension(name string) error {
	return pgerror.New(pgerror.FeatureNotSupported, "extension %q is not available", name).
		WithDetail("%s", "Extensions are part of percodb; it loads none from files.").
		WithHint("pg_available_extensions lists those that there are.")
}

// extensionSchema returns the schema in which an extension is to be installed; "": none is given.
func (r *run) extensionSchema(ctx context.Context, given string) (string, error) {
	if given != "" {
		if ok, err := r.r.SchemaExists(ctx, given); err != nil || !ok {
			return "", errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", given))
		}
		return given, nil
	}
	for _, schema := range r.path {
		if schema == catalog.TemporarySchema {
			continue
		}
		if ok, err := r.r.SchemaExists(ctx, schema); err != nil || ok {
			return schema, err
		}
	}
	return "", pgerror.New(pgerror.InvalidSchemaName, "no schema has been selected to create in")
}

// extensionFits fails if a schema has a type of the name of one of the extension's.
func (r *run) extensionFits(ctx context.Context, e *builtin.Extension, schema string) error {
	if catalog.IsTemporary(schema) || schema == catalog.InformationSchema || schema == catalog.OwnSchema {
		return pgerror.Unsupported("An extension in schema "+schema, "Choose a schema of yours.")
	}
	for _, oid := range e.Types {
		if err := r.requireNoType(ctx, schema, types.Type{OID: oid, Mod: -1}.Info().Name); err != nil {
			return err
		}
	}
	return nil
}

// extension finds an extension that the user owns.
func (r *run) extension(name string) (*catalog.ExtensionDescriptor, error) {
	d := r.r.Extensions().Named(name)
	switch {
	case d == nil:
		return nil, pgerror.New(pgerror.UndefinedObject, "extension %q does not exist", name)
	case !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner("extension", d.Name)
	}
	return d, nil
}

// alterExtension is ALTER EXTENSION … UPDATE, ADD or DROP.
func (r *run) alterExtension(n *ast.AlterExtension) error {
	d, err := r.extension(n.Name)
	switch {
	case err != nil:
		return err
	case n.Action != "UPDATE":
		return pgerror.Unsupported("ALTER EXTENSION … "+n.Action, "What an extension consists of is part of percodb.").At(n.Position())
	case n.Version != nil && *n.Version != d.Version:
		return pgerror.New(pgerror.InvalidParameterValue, "extension %q has no update path from version %q to version %q", d.Name, d.Version, *n.Version)
	}
	r.noticeAbsent("version %q of extension %q is already installed", d.Version, d.Name)
	return nil
}

// moveExtension is ALTER EXTENSION … SET SCHEMA. What is stored names an extension's objects without a schema, so that nothing else
// changes.
func (r *run) moveExtension(ctx context.Context, name, schema string) error {
	d := r.r.Extensions().Named(name)
	if d == nil {
		return pgerror.New(pgerror.UndefinedObject, "extension %q does not exist", name)
	}
	if ok, err := r.r.SchemaExists(ctx, schema); err != nil || !ok {
		return errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", schema))
	}
	if err := r.mayCreateIn(schema); err != nil {
		return err
	}
	if _, err := r.extension(name); err != nil {
		return err
	}
	e := d.Extension()
	switch {
	case e != nil && e.Schema != "":
		return pgerror.New(pgerror.FeatureNotSupported, "extension %q does not support SET SCHEMA", name)
	case d.Schema == schema:
		return nil
	case e != nil:
		if err := r.extensionFits(ctx, e, schema); err != nil {
			return err
		}
	}
	next := *d
	next.Schema = schema
	return r.putExtension(ctx, &next)
}

// commentExtension is COMMENT ON EXTENSION.
func (r *run) commentExtension(ctx context.Context, name, text string) error {
	d, err := r.extension(name)
	if err != nil {
		return err
	}
	if e := d.Extension(); e != nil && e.Schema != "" {
		return pgerror.Unsupported("COMMENT ON EXTENSION "+name, "It is part of every database.")
	}
	next := *d
	next.Comment = text
	return r.putExtension(ctx, &next)
}

// dropExtensions is DROP EXTENSION.
func (r *run) dropExtensions(ctx context.Context, n *ast.DropObjects) error {
	var dropped []*catalog.ExtensionDescriptor
	for i := range n.Objects {
		name := n.Objects[i].Name[0]
		if r.r.Extensions().Named(name) == nil && n.IfExists {
			r.noticeAbsent("extension %q does not exist, skipping", name)
			continue
		}
		d, err := r.extension(name)
		if err != nil {
			return err
		}
		if e := d.Extension(); e != nil && e.Schema != "" {
			return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop extension %s because it is required by the database system", name)
		}
		if !slices.Contains(dropped, d) {
			dropped = append(dropped, d)
		}
	}
	for _, d := range dropped {
		if err := r.dropExtension(ctx, d, n.Cascade); err != nil {
			return err
		}
	}
	return nil
}

// dropExtension drops an extension, with cascade what depends on it as well.
func (r *run) dropExtension(ctx context.Context, d *catalog.ExtensionDescriptor, cascade bool) error {
	found, err := r.extensionUses(ctx, d)
	if err != nil {
		return err
	}
	if len(found.lines) > 0 && !cascade {
		return pgerror.New(pgerror.DependentObjectsStillExist, "cannot drop extension %s because other objects depend on it", d.Name).
			WithDetail("%s", joinLines(found.lines)).WithHint("Use DROP ... CASCADE to drop the dependent objects too.")
	}
	others := make([]string, len(found.lines))
	for i, line := range found.lines {
		others[i], _, _ = strings.Cut(line, " depends on ")
	}
	r.noticeCascade(others)
	if err := r.dropDependents(ctx, &found.typeDropping); err != nil {
		return err
	}
	if err := r.dropFoundTextSearch(ctx, found.textSearch); err != nil {
		return err
	}
	if err := r.ch.DropExtension(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// extensionsIn lists the extensions in a schema.
func (r *run) extensionsIn(schema string) (found []*catalog.ExtensionDescriptor) {
	for _, d := range r.r.Extensions().All() {
		if d.Schema == schema {
			found = append(found, d)
		}
	}
	return found
}

// extensionsOf lists the extensions that roles own.
func (r *run) extensionsOf(roles []uint32) (found []*catalog.ExtensionDescriptor) {
	for _, d := range r.r.Extensions().All() {
		if e := d.Extension(); slices.Contains(roles, d.OwnerOID()) && (e == nil || e.Schema == "") {
			found = append(found, d)
		}
	}
	return found
}
