package ddl

import (
	"context"
	"slices"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// Text search configurations and dictionaries: CREATE, ALTER and COMMENT. DROP is in textsearchdrop.go.

// textSearchWords begins the kinds of text search objects.
const textSearchWords = "TEXT SEARCH "

// ofTextSearch reports whether a kind of objects is one of full-text search.
func ofTextSearch(kind string) bool { return strings.HasPrefix(kind, textSearchWords) }

// textSearchType returns the type whose values are the objects of a kind; 0 for parsers and templates.
func textSearchType(kind string) types.OID {
	switch kind {
	case "TEXT SEARCH CONFIGURATION":
		return types.OIDRegconfig
	case "TEXT SEARCH DICTIONARY":
		return types.OIDRegdictionary
	}
	return 0
}

// createTextSearch is CREATE TEXT SEARCH ….
func (r *run) createTextSearch(ctx context.Context, n *ast.Define) error {
	t := textSearchType(n.Kind)
	if t == 0 {
		if !r.access.Superuser() {
			return pgerror.New(pgerror.InsufficientPrivilege, "must be superuser to create %ss", strings.ToLower(n.Kind))
		}
		return pgerror.Unsupported("CREATE "+n.Kind, "Its functions would have to be written in C. Use the parser default and the templates simple and snowball.").At(n.Position())
	}
	name := pathName(n.Pos, n.Name)
	schema, err := r.routineSchema(ctx, name)
	if err != nil {
		return unplaced(err)
	}
	d := &catalog.TextSearchDescriptor{Type: t, Schema: schema, Name: name.Name, Owned: catalog.Owned{Owner: r.User}}
	if t == types.OIDRegconfig {
		err = r.defineConfiguration(ctx, d, n.Items)
	} else {
		err = r.defineDictionary(ctx, d, n.Items)
	}
	if err != nil {
		return err
	}
	if r.r.TextSearch().Find(t, schema, name.Name) != nil {
		column, index := "cfg", "pg_ts_config_cfgname_index"
		if t == types.OIDRegdictionary {
			column, index = "dict", "pg_ts_dict_dictname_index"
		}
		return pgerror.New(pgerror.UniqueViolation, "duplicate key value violates unique constraint %q", index).
			WithDetail("Key (%sname, %snamespace)=(%s, %d) already exists.", column, column, name.Name, r.schemaID(schema))
	}
	if d.ID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	return r.putTextSearch(ctx, d)
}

func (r *run) putTextSearch(ctx context.Context, d *catalog.TextSearchDescriptor) error {
	if err := r.ch.PutTextSearch(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// defineConfiguration reads the definition of a configuration.
func (r *run) defineConfiguration(ctx context.Context, d *catalog.TextSearchDescriptor, items []ast.DefItem) error {
	parser, from := false, uint32(0)
	for i := range items {
		item := &items[i]
		name, err := namedValue(item)
		if err != nil {
			return err
		}
		switch item.Name {
		case "parser":
			parser = true
			if (len(name) != 1 && name[0] != catalog.SystemSchema) || name[len(name)-1] != textsearch.ParserName {
				return pgerror.New(pgerror.UndefinedObject, "text search parser %q does not exist", strings.Join(name, "."))
			}
		case "copy":
			if from, err = r.textSearchOID(ctx, types.OIDRegconfig, name); err != nil {
				return err
			}
		default:
			return pgerror.New(pgerror.SyntaxError, "text search configuration parameter %q not recognized", item.Name)
		}
	}
	switch {
	case parser && from != 0:
		return pgerror.New(pgerror.SyntaxError, "cannot specify both PARSER and COPY options")
	case from != 0:
		for kind, list := range r.r.TextSearch().Configuration(from).Dictionaries {
			oids := make([]uint32, len(list))
			for i := range list {
				oids[i] = list[i].OID
			}
			d.Map(kind, oids)
		}
	case !parser:
		return pgerror.New(invalidObjectDefinition, "text search parser is required")
	}
	return nil
}

// defineDictionary reads the definition of a dictionary.
func (r *run) defineDictionary(ctx context.Context, d *catalog.TextSearchDescriptor, items []ast.DefItem) error {
	var template *textsearch.Template
	for i := range items {
		item := &items[i]
		if item.Name != "template" {
			o, err := dictionaryOption(item)
			if err != nil {
				return err
			}
			d.Options = append(d.Options, o)
			continue
		}
		name, err := namedValue(item)
		if err != nil {
			return err
		}
		if template, err = r.textSearchTemplate(ctx, name); err != nil {
			return err
		}
	}
	if template == nil {
		return pgerror.New(invalidObjectDefinition, "text search template is required")
	}
	d.Template = template.OID
	_, err := textsearch.NewDictionary(0, d.Name, template, d.Options)
	return err
}

// textSearchTemplate finds a template by its name.
func (r *run) textSearchTemplate(ctx context.Context, path []string) (*textsearch.Template, error) {
	name := pathName(0, path)
	if name.Schema != "" {
		if ok, err := r.r.SchemaExists(ctx, name.Schema); err != nil || !ok {
			return nil, errorOr(err, pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Schema))
		}
	}
	if t := textsearch.TemplateNamed(name.Name); t != nil {
		schema := catalog.TextSearchSchema(r.r, t.OID)
		if schema != "" && (schema == name.Schema || name.Schema == "" && slices.Contains(catalog.Path(r.r), schema)) {
			return t, nil
		}
	}
	return nil, pgerror.New(pgerror.UndefinedObject, "text search template %q does not exist", strings.Join(path, "."))
}

// namedValue returns the value of a definition that is a name.
func namedValue(item *ast.DefItem) ([]string, error) {
	switch v := item.Value; {
	case v == nil:
		return nil, pgerror.New(pgerror.SyntaxError, "%s requires a parameter", item.Name)
	case v.Type != nil:
		return v.Type.Name, nil
	case v.Text != nil:
		return []string{v.Text.Value}, nil
	case v.Word != "":
		return []string{strings.ToLower(v.Word)}, nil
	}
	return nil, pgerror.New(pgerror.SyntaxError, "argument of %s must be a name", item.Name)
}

// dictionaryOption returns an option of a dictionary; the value may be a word, a string or a number.
func dictionaryOption(item *ast.DefItem) (textsearch.Option, error) {
	o := textsearch.Option{Name: item.Name}
	if item.Value != nil && item.Value.Number != "" {
		o.Value, o.Number = item.Value.Number, true
		return o, nil
	}
	name, err := namedValue(item)
	o.Value = strings.Join(name, ".")
	return o, err
}

// absentTextSearch is the error for a text search object that does not exist. notice is what IF EXISTS reports.
type absentTextSearch struct {
	err    *pgerror.Error
	notice string
}

func (e *absentTextSearch) Error() string { return e.err.Error() }

// findTextSearch finds a configuration or a dictionary, also a delivered one.
//
// Errors: *absentTextSearch, 42501.
func (r *run) findTextSearch(ctx context.Context, t types.OID, path []string) (uint32, error) {
	name := pathName(0, path)
	if err := r.useSchema(name); err != nil {
		return 0, err
	}
	if name.Schema != "" {
		ok, err := r.r.SchemaExists(ctx, name.Schema)
		if err != nil {
			return 0, err
		}
		if !ok {
			return 0, &absentTextSearch{pgerror.New(pgerror.InvalidSchemaName, "schema %q does not exist", name.Schema),
				"schema \"" + name.Schema + "\" does not exist, skipping"}
		}
	}
	if oid := catalog.FindTextSearch(r.r, t, name.Schema, name.Name); oid != 0 {
		return oid, nil
	}
	e := pgerror.New(pgerror.UndefinedObject, "%s %q does not exist", catalog.TextSearchKind(t), strings.Join(path, "."))
	return 0, &absentTextSearch{e, e.Message + ", skipping"}
}

// textSearchOID is findTextSearch for an object that must exist.
func (r *run) textSearchOID(ctx context.Context, t types.OID, path []string) (uint32, error) {
	oid, err := r.findTextSearch(ctx, t, path)
	if absent, ok := err.(*absentTextSearch); ok {
		return 0, absent.err
	}
	return oid, err
}

// ownedTextSearch finds a configuration or a dictionary that the user may change.
func (r *run) ownedTextSearch(ctx context.Context, kind string, path []string) (*catalog.TextSearchDescriptor, error) {
	t := textSearchType(kind)
	if t == 0 {
		return nil, r.refuseDelivered(kind, path[len(path)-1])
	}
	oid, err := r.textSearchOID(ctx, t, path)
	if err != nil {
		return nil, err
	}
	d := r.r.TextSearch().ByOID(types.OID(oid))
	switch {
	case d == nil:
		return nil, r.refuseDelivered(kind, path[len(path)-1])
	case !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner(d.Kind(), d.Name)
	}
	return d, nil
}

// refuseDelivered is the error for a change of an object that every database has.
func (r *run) refuseDelivered(kind, name string) error {
	if !r.access.Superuser() {
		return mustBeOwner(strings.ToLower(kind), name)
	}
	return pgerror.Unsupported("Changing the "+strings.ToLower(kind)+" "+name, "It is part of percodb: make a copy and change that.")
}

// alterTextSearch is ALTER TEXT SEARCH CONFIGURATION … MAPPING and ALTER TEXT SEARCH DICTIONARY (…).
func (r *run) alterTextSearch(ctx context.Context, n *ast.AlterTextSearch) error {
	d, err := r.ownedTextSearch(ctx, n.Kind(), n.Name)
	if err != nil {
		return err
	}
	next := d.Clone()
	if d.Type == types.OIDRegconfig {
		err = r.alterMapping(ctx, next, n)
	} else {
		err = alterOptions(next, n.Items)
	}
	if err != nil {
		return err
	}
	return r.putTextSearch(ctx, next)
}

// alterOptions changes the options of a dictionary: one without a value is removed.
func alterOptions(d *catalog.TextSearchDescriptor, items []ast.DefItem) error {
	for i := range items {
		item := &items[i]
		d.Options = slices.DeleteFunc(d.Options, func(o textsearch.Option) bool { return o.Name == item.Name })
		if item.Value == nil {
			continue
		}
		o, err := dictionaryOption(item)
		if err != nil {
			return err
		}
		d.Options = append(d.Options, o)
	}
	_, err := textsearch.NewDictionary(uint32(d.ID), d.Name, textsearch.TemplateByOID(d.Template), d.Options)
	return err
}

// alterTextSearchObject is ALTER TEXT SEARCH … RENAME TO, OWNER TO and SET SCHEMA.
func (r *run) alterTextSearchObject(ctx context.Context, n *ast.AlterObject) error {
	d, err := r.ownedTextSearch(ctx, n.Object.Kind, n.Object.Name)
	if err != nil {
		return err
	}
	switch {
	case n.Change.Owner != nil:
		return r.changeOwner(&d.Owned, d.Schema, *n.Change.Owner, func(owner uint32) error { return r.passTextSearch(ctx, d, owner) })
	case n.Change.Rename != "":
		return r.moveTextSearch(ctx, d, d.Schema, n.Change.Rename)
	}
	schema := n.Change.Schema
	if err := r.requireSchema(ctx, schema, ast.TableName{Schema: schema, Name: d.Name}); err != nil {
		return unplaced(err)
	}
	if catalog.IsTemporary(schema) {
		return pgerror.New(pgerror.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
	}
	if schema == d.Schema {
		return r.mayCreateIn(schema)
	}
	return r.moveTextSearch(ctx, d, schema, d.Name)
}

// passTextSearch gives a configuration or a dictionary to another role.
func (r *run) passTextSearch(ctx context.Context, d *catalog.TextSearchDescriptor, owner uint32) error {
	next := d.Clone()
	next.Owned = d.GivenTo(owner)
	return r.putTextSearch(ctx, next)
}

// moveTextSearch gives a configuration or a dictionary another name or schema, in the expressions that are stored as well.
func (r *run) moveTextSearch(ctx context.Context, d *catalog.TextSearchDescriptor, schema, name string) error {
	if err := r.mayCreateIn(schema); err != nil {
		return err
	}
	if r.r.TextSearch().Find(d.Type, schema, name) != nil {
		return pgerror.New(pgerror.DuplicateObject, "%s %q already exists in schema %q", d.Kind(), name, schema)
	}
	was, is := qualifiedText(d.Schema, d.Name), qualifiedText(schema, name)
	err := r.rewriteStored(ctx, func(e ast.Expr) (changed bool, _ error) {
		if text, ok := e.(*ast.Literal); ok && text.Kind == ast.LiteralString && text.Value == was {
			text.Value = is
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Schema, next.Name = schema, name
	return r.putTextSearch(ctx, next)
}

func qualifiedText(schema, name string) string {
	return ast.QuoteIdent(schema) + "." + ast.QuoteIdent(name)
}

// commentTextSearch is COMMENT ON TEXT SEARCH ….
func (r *run) commentTextSearch(ctx context.Context, o *ast.Object, text string) error {
	d, err := r.ownedTextSearch(ctx, o.Kind, o.Name)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	return r.putTextSearch(ctx, next)
}
