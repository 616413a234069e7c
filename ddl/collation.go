package ddl

import (
	"context"
	"strings"

	"golang.org/x/text/language"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/collation"
	"github.com/percodb/percodb/sql/pgerror"
)

// collationOptions are the attributes of CREATE COLLATION by their names.
type collationOptions map[string]*ast.DefItem

// createCollation is CREATE COLLATION.
func (r *run) createCollation(ctx context.Context, n *ast.Define) error {
	name := pathName(n.Pos, n.Name)
	schema, err := r.permanentSchema(ctx, name)
	if err != nil {
		return unplaced(err)
	}
	if catalog.IsTemporary(schema) {
		return pgerror.Unsupported("a collation in the schema of temporary relations", "Create it in another schema.").At(n.Position())
	}
	if err := r.mayCreateIn(schema); err != nil {
		return err
	}
	d := &catalog.CollationDescriptor{Schema: schema, Name: name.Name, Owned: catalog.Owned{Owner: r.User}}
	from := n.From
	if from == nil {
		options, err := readCollationOptions(n.Items)
		if err != nil {
			return err
		}
		if item := options["from"]; item != nil {
			from = definedName(item)
		} else if err := options.describe(d); err != nil {
			return err
		}
	}
	if from != nil {
		if err := r.copyCollation(d, from); err != nil {
			return err
		}
	}
	if taken := r.collationTaken(schema, d); taken != "" {
		if n.IfNotExists {
			r.notice(pgerror.DuplicateObject, "%s already exists, skipping", taken)
			return nil
		}
		return pgerror.New(pgerror.DuplicateObject, "%s already exists", taken)
	}
	if err := checkCollationLocale(d); err != nil {
		return err
	}
	if d.ID, err = r.ch.NewID(ctx); err != nil {
		return err
	}
	r.warnOfVersion(d)
	return r.putCollation(ctx, d)
}

func (r *run) putCollation(ctx context.Context, d *catalog.CollationDescriptor) error {
	if err := r.ch.PutCollation(ctx, d); err != nil {
		return err
	}
	return r.look(ctx)
}

// readCollationOptions reads the list of CREATE COLLATION.
func readCollationOptions(items []ast.DefItem) (collationOptions, error) {
	options := collationOptions{}
	for i := range items {
		item := &items[i]
		switch item.Name {
		case "from", "locale", "lc_collate", "lc_ctype", "provider", "deterministic", "version":
		default:
			return nil, pgerror.New(pgerror.SyntaxError, "collation attribute \"%s\" not recognized", item.Name).At(item.Position())
		}
		if options[item.Name] != nil {
			return nil, pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(item.Position())
		}
		options[item.Name] = item
	}
	conflict := pgerror.New(pgerror.SyntaxError, "conflicting or redundant options")
	switch {
	case options["locale"] != nil && (options["lc_collate"] != nil || options["lc_ctype"] != nil):
		return nil, conflict.WithDetail("LOCALE cannot be specified together with LC_COLLATE or LC_CTYPE.")
	case options["from"] != nil && len(items) > 1:
		return nil, conflict.WithDetail("FROM cannot be specified together with any other options.")
	}
	return options, nil
}

// text returns the value of an attribute.
func (o collationOptions) text(name string) (value string, given bool, err error) {
	item := o[name]
	if item == nil {
		return "", false, nil
	}
	switch v := item.Value; {
	case v == nil:
		return "", false, pgerror.New(pgerror.SyntaxError, "%s requires a parameter", name)
	case v.Text != nil:
		return v.Text.Value, true, nil
	case v.Type != nil:
		return strings.Join(v.Type.Name, "."), true, nil
	case v.Word != "":
		return strings.ToLower(v.Word), true, nil
	default:
		return v.Number + v.Operator, true, nil
	}
}

// describe fills in a collation that is no copy.
func (o collationOptions) describe(d *catalog.CollationDescriptor) error {
	values := map[string]string{}
	for _, name := range []string{"provider", "deterministic", "version", "locale", "lc_collate", "lc_ctype"} {
		value, given, err := o.text(name)
		if name == "deterministic" && given || err == nil && given {
			values[name] = value
		} else if err != nil && name != "deterministic" {
			return err
		}
	}
	deterministic, err := isDeterministic(o["deterministic"], values["deterministic"])
	if err != nil {
		return err
	}
	switch provider := values["provider"]; {
	case strings.EqualFold(provider, "icu"):
		d.Provider, d.AnyEncoding = collation.ICU, true
		locale, given := values["locale"]
		if !given {
			return missingLocale("locale")
		}
		d.Locale = locale
	case o["provider"] == nil, strings.EqualFold(provider, "libc"):
		d.Provider = collation.Libc
		d.Collate, d.Ctype = values["lc_collate"], values["lc_ctype"]
		if locale, given := values["locale"]; given {
			d.Collate, d.Ctype = locale, locale
		} else if o["lc_collate"] == nil {
			return missingLocale("lc_collate")
		} else if o["lc_ctype"] == nil {
			return missingLocale("lc_ctype")
		}
	default:
		return pgerror.New(invalidObjectDefinition, "unrecognized collation provider: %s", provider)
	}
	switch {
	case !deterministic && d.Provider != collation.ICU:
		return pgerror.New(pgerror.FeatureNotSupported, "nondeterministic collations not supported with this provider")
	case !deterministic:
		return pgerror.Unsupported("nondeterministic collations",
			"Compare lower(x), or unaccented texts that a generated column holds; texts of type citext are equal whatever their case.")
	}
	d.RulesVersion = values["version"]
	if o["version"] == nil {
		d.RulesVersion = d.Collation().Version()
	}
	return nil
}

func missingLocale(name string) error {
	return pgerror.New(invalidObjectDefinition, "parameter \"%s\" must be specified", name)
}

// isDeterministic reads the attribute "deterministic"; item is nil if it is not given.
func isDeterministic(item *ast.DefItem, value string) (bool, error) {
	if item == nil || item.Value == nil {
		return true, nil
	}
	switch strings.ToLower(value) {
	case "true", "on", "1":
		return true, nil
	case "false", "off", "0":
		return false, nil
	}
	return false, pgerror.New(pgerror.SyntaxError, "deterministic requires a Boolean value")
}

// copyCollation fills in a copy of the collation of that name.
func (r *run) copyCollation(d *catalog.CollationDescriptor, name []string) error {
	c, err := r.findCollation(0, name)
	if err != nil {
		return err
	}
	if c.IsDefault() {
		return pgerror.New(invalidObjectDefinition, "collation \"default\" cannot be copied")
	}
	d.Provider, d.AnyEncoding, d.RulesVersion = c.Provider, !c.OfUTF8(), c.Version()
	if of := r.r.Collations().ByOID(c.OID); of != nil {
		d.Locale, d.Collate, d.Ctype, d.AnyEncoding = of.Locale, of.Collate, of.Ctype, of.AnyEncoding
	} else if c.Provider == collation.ICU {
		d.Locale = c.Locale
	} else {
		d.Collate, d.Ctype = c.Locale, c.Locale
	}
	return nil
}

// checkCollationLocale fails if percodb cannot order texts as a locale says.
func checkCollationLocale(d *catalog.CollationDescriptor) error {
	if d.Provider == collation.ICU {
		problem := collation.CheckLocale(d.Locale)
		switch {
		case problem == nil:
			return nil
		case problem.Attribute != "":
			return pgerror.Unsupported("the attribute \""+problem.Attribute+"\" of a locale",
				"Use a type of collation and attributes that docs/collations.md lists.")
		}
		// PostgreSQL calls it an internal error (XX000).
		return pgerror.New(pgerror.InvalidParameterValue, "could not open collator for locale \"%s\": U_ILLEGAL_ARGUMENT_ERROR", d.Locale)
	}
	for _, locale := range []string{d.Collate, d.Ctype} {
		if collation.LibcLocale(locale) {
			continue
		}
		base, _, _ := strings.Cut(strings.ReplaceAll(locale, "_", "-"), ".")
		if _, err := language.Parse(base); err == nil && len(base) > 3 {
			return pgerror.Unsupported("the locale \""+locale+"\" of the provider libc", "Use provider = icu, or the locale C, POSIX or C.UTF-8.")
		}
		return pgerror.New(pgerror.InvalidParameterValue, "could not create locale \"%s\": No such file or directory", locale).
			WithDetail("The operating system could not find any locale data for the locale name \"%s\".", locale)
	}
	return nil
}

// warnOfVersion warns of a version that is not that of the rules in this program.
func (r *run) warnOfVersion(d *catalog.CollationDescriptor) {
	actual := d.Collation().Version()
	if d.RulesVersion == "" || actual == "" || d.RulesVersion == actual {
		return
	}
	r.Report.Notice(pgerror.New(pgerror.Warning, "collation \"%s\" has version mismatch", d.Name).
		WithDetail("The collation in the database was created using version %s, but the operating system provides version %s.", d.RulesVersion, actual).
		WithHint("Rebuild all objects affected by this collation and run ALTER COLLATION " + ast.QuoteIdent(d.Schema) + "." + ast.QuoteIdent(d.Name) +
			" REFRESH VERSION, or build PostgreSQL with the right library version."))
}

// collationTaken returns how messages call a collation of a schema that has the name of d, "" if there is none.
func (r *run) collationTaken(schema string, d *catalog.CollationDescriptor) string {
	found := r.r.Collations().Named(schema, d.Name)
	switch {
	case found == nil:
		return ""
	case !found.AnyEncoding && !d.AnyEncoding:
		return "collation \"" + d.Name + "\" for encoding \"UTF8\""
	}
	return "collation \"" + d.Name + "\""
}

// findCollation finds a collation by its name.
func (r *run) findCollation(pos ast.Pos, path []string) (*collation.Collation, error) {
	name := pathName(pos, path)
	if err := r.useSchema(name); err != nil {
		return nil, unplaced(err)
	}
	c, err := planner.ResolveCollation(path, r.r, 0)
	return c, unplaced(err)
}

// ownedCollation finds a collation that the user may change.
func (r *run) ownedCollation(o *ast.Object) (*catalog.CollationDescriptor, error) {
	c, err := r.findCollation(o.Pos, o.Name)
	if err != nil {
		return nil, err
	}
	d := r.r.Collations().ByOID(c.OID)
	switch {
	case d == nil && !r.access.Superuser():
		return nil, mustBeOwner("collation", c.Name)
	case d == nil:
		return nil, pgerror.New(pgerror.InsufficientPrivilege, "permission denied: \"%s\" is a system collation", c.Name).
			WithHint("Create a collation FROM it.")
	case !r.access.Owns(d.OwnerOID()):
		return nil, mustBeOwner("collation", d.Name)
	}
	return d, nil
}

// alterCollation is ALTER COLLATION.
func (r *run) alterCollation(ctx context.Context, n *ast.AlterObject) error {
	if n.Change.Version {
		return r.refreshCollation(ctx, &n.Object)
	}
	d, err := r.ownedCollation(&n.Object)
	if err != nil {
		return err
	}
	switch {
	case n.Change.Owner != nil:
		return r.changeOwner(&d.Owned, d.Schema, *n.Change.Owner, func(owner uint32) error { return r.passCollation(ctx, d, owner) })
	case n.Change.Schema != "":
		if err := r.requireSchema(ctx, n.Change.Schema, ast.TableName{Schema: n.Change.Schema, Name: d.Name}); err != nil {
			return unplaced(err)
		}
		if catalog.IsTemporary(n.Change.Schema) {
			return pgerror.New(pgerror.FeatureNotSupported, "cannot move objects into or out of temporary schemas")
		}
		if n.Change.Schema == d.Schema {
			return r.mayCreateIn(d.Schema)
		}
		return r.moveCollation(ctx, d, n.Change.Schema, d.Name)
	}
	return r.moveCollation(ctx, d, d.Schema, n.Change.Rename)
}

// refreshCollation is ALTER COLLATION … REFRESH VERSION. Indexes know by themselves which rules made their keys.
func (r *run) refreshCollation(ctx context.Context, o *ast.Object) error {
	c, err := r.findCollation(o.Pos, o.Name)
	if err != nil {
		return err
	}
	d := r.r.Collations().ByOID(c.OID)
	if d == nil && r.access.Superuser() || d != nil && r.access.Owns(d.OwnerOID()) && d.RulesVersion == c.Version() {
		r.notice(pgerror.SuccessfulCompletion, "version has not changed")
		return nil
	}
	if d, err = r.ownedCollation(o); err != nil {
		return err
	}
	r.notice(pgerror.SuccessfulCompletion, "changing version from %s to %s", d.RulesVersion, c.Version())
	next := d.Clone()
	next.RulesVersion = c.Version()
	return r.putCollation(ctx, next)
}

// passCollation gives a collation to another role.
func (r *run) passCollation(ctx context.Context, d *catalog.CollationDescriptor, owner uint32) error {
	next := d.Clone()
	next.Owned = d.GivenTo(owner)
	return r.putCollation(ctx, next)
}

// moveCollation gives a collation another name or schema, in the expressions that are stored as well.
func (r *run) moveCollation(ctx context.Context, d *catalog.CollationDescriptor, schema, name string) error {
	if err := r.mayCreateIn(schema); err != nil {
		return err
	}
	next := d.Clone()
	next.Schema, next.Name = schema, name
	if taken := r.collationTaken(schema, next); taken != "" {
		return pgerror.New(pgerror.DuplicateObject, "%s already exists in schema %q", taken, schema)
	}
	rename := func(c *ast.Collate) { c.Name = []string{schema, name} }
	err := r.rewriteUses(ctx, func(changed func()) ast.Visitor {
		return collatesBy(d, func(c *ast.Collate) {
			changed()
			rename(c)
		})
	})
	if err != nil {
		return err
	}
	routines, bodies := r.standardWith(d, rename)
	for i, f := range routines {
		changed := f.Clone()
		changed.Body = bodies[i]
		if err := r.ch.PutRoutine(ctx, changed); err != nil {
			return err
		}
	}
	if err := r.putCollation(ctx, next); err != nil {
		return err
	}
	return r.reprintIndexes(ctx, collationDependency(next))
}

// commentCollation is COMMENT ON COLLATION.
func (r *run) commentCollation(ctx context.Context, o *ast.Object, text string) error {
	d, err := r.ownedCollation(o)
	if err != nil {
		return err
	}
	next := d.Clone()
	next.Comment = text
	return r.putCollation(ctx, next)
}
