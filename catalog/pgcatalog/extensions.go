package pgcatalog

import (
	"slices"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/acl"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// The rows about extensions, and those of what installed ones consist of.

// ownExtension is the OID of an extension that the schema percodb and its views belong to, so that pg_dump leaves them to the server, as it does
// what belongs to an extension that every database has.
const ownExtension = 13199

func extensionRows(s *scan) error {
	err := s.emit(col{"oid", num(ownExtension)}, col{"extname", text(catalog.OwnSchema)}, col{"extowner", num(catalog.BootstrapSuperuser)},
		col{"extnamespace", oid(schemaOID(s.Resolver, catalog.OwnSchema))}, col{"extversion", text("1.0")})
	if err != nil {
		return err
	}
	for _, d := range s.Extensions().All() {
		e := d.Extension()
		err := s.emit(col{"oid", oid(uint32(d.ID))}, col{"extname", text(d.Name)}, col{"extowner", oid(d.OwnerOID())},
			col{"extnamespace", oid(schemaOID(s.Resolver, d.Schema))}, col{"extrelocatable", boolean(e == nil || e.Schema == "")},
			col{"extversion", text(d.Version)})
		if err != nil {
			return err
		}
	}
	return nil
}

func availableExtensionRows(s *scan) error {
	for _, e := range builtin.Extensions() {
		installed := types.Null
		if d := s.Extensions().Named(e.Name); d != nil {
			installed = text(d.Version)
		}
		err := s.emit(col{"name", text(e.Name)}, col{"default_version", text(e.Version)}, col{"installed_version", installed},
			col{"comment", text(e.Comment)})
		if err != nil {
			return err
		}
	}
	return nil
}

func extensionVersionRows(s *scan) error {
	for _, e := range builtin.Extensions() {
		d := s.Extensions().Named(e.Name)
		schema := types.Null
		if e.Schema != "" {
			schema = text(e.Schema)
		}
		err := s.emit(col{"name", text(e.Name)}, col{"version", text(e.Version)}, col{"installed", boolean(d != nil && d.Version == e.Version)},
			col{"superuser", boolean(true)}, col{"trusted", boolean(true)}, col{"relocatable", boolean(e.Schema == "")},
			col{"schema", schema}, col{"comment", text(e.Comment)})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachInstalled calls f with the installed extensions that this program has.
func eachInstalled(r catalog.Resolver, f func(*catalog.ExtensionDescriptor, *builtin.Extension) error) error {
	for _, d := range r.Extensions().All() {
		if e := d.Extension(); e != nil {
			if err := f(d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// extensionOfType returns the installed extension that a type, or the elements of an array type, belong to; nil: none.
func (s *scan) extensionOfType(t types.Type) *catalog.ExtensionDescriptor {
	if elem := t.Elem(); elem.Valid() {
		t = elem
	}
	for _, d := range s.Extensions().All() {
		if e := d.Extension(); e != nil && slices.Contains(e.Types, t.OID) {
			return d
		}
	}
	return nil
}

// extensionTypeRows emits the types of installed extensions.
func (s *scan) extensionTypeRows() error {
	return eachInstalled(s.Resolver, func(d *catalog.ExtensionDescriptor, e *builtin.Extension) error {
		for _, id := range e.Types {
			t := types.Type{OID: id, Mod: -1}
			for _, t := range []types.Type{t, t.ArrayOf()} {
				if err := s.emitExtensionType(d, t.Info()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (s *scan) emitExtensionType(d *catalog.ExtensionDescriptor, info *types.Info) error {
	cols := []col{
		{"oid", oid(info.OID)}, {"typname", text(info.Name)}, {"typnamespace", oid(schemaOID(s.Resolver, d.Schema))},
		{"typowner", oid(d.OwnerOID())}, {"typlen", num(info.Len)}, {"typbyval", boolean(byValue(info))}, {"typcategory", letter(byte(info.Category))},
		{"typisdefined", boolean(true)}, {"typdelim", text(",")}, {"typelem", oid(info.Elem)}, {"typarray", oid(info.Array)},
		{"typalign", letter(alignment(info))}, {"typstorage", letter(storage(info))}, {"typtypmod", num(-1)}, {"typtype", letter('b')},
		{"typcollation", num(collationOf(types.Type{OID: info.OID, Mod: -1}))},
	}
	if info.Elem != 0 {
		cols = append(cols, arrayFunctions()...)
	}
	return s.emit(cols...)
}

// initPrivsRows shows the privileges on objects of the system, which pg_dump leaves out: those on functions as they were at first.
func initPrivsRows(s *scan) error {
	initial := func(class int, id, column uint32, list types.Datum) error {
		if list.IsNull() {
			return nil
		}
		return s.emit(col{"objoid", oid(id)}, col{"classoid", num(class)}, col{"objsubid", num(column)}, col{"privtype", letter('i')}, col{"initprivs", list})
	}
	for _, name := range []string{catalog.SystemSchema, catalog.InformationSchema, catalog.OwnSchema} {
		if err := initial(classPgNamespace, schemaOID(s.Resolver, name), 0, types.ACL(s.Grants().Schemas[name].ACL)); err != nil {
			return err
		}
	}
	standard := acl.Default(acl.Function, catalog.BootstrapSuperuser)
	for _, p := range builtin.Procs() {
		if list := catalog.InitialACL(acl.Function, p.Signature); list != nil && !list.Equal(standard) {
			if err := initial(classPgProc, uint32(p.OID), 0, types.ACL(list)); err != nil {
				return err
			}
		}
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Kind != catalog.KindVirtual {
			return nil
		}
		for i := range t.Columns {
			if err := initial(classPgClass, t.OID(), t.Columns[i].ID, types.ACL(t.Columns[i].ACL)); err != nil {
				return err
			}
		}
		return initial(classPgClass, t.OID(), 0, s.relationACL(t))
	})
}

// ownDependRows shows what the extension of the schema percodb consists of.
func (s *scan) ownDependRows() error {
	member := func(class int, object uint32) error {
		return s.emit(col{"classid", num(class)}, col{"objid", oid(object)}, col{"refclassid", num(classPgExtension)}, col{"refobjid", num(ownExtension)},
			col{"deptype", letter('e')})
	}
	if id := schemaOID(s.Resolver, catalog.OwnSchema); id != 0 {
		if err := member(classPgNamespace, id); err != nil {
			return err
		}
	}
	return s.each(func(t *catalog.TableDescriptor) error {
		if t.Schema != catalog.OwnSchema {
			return nil
		}
		return member(classPgClass, t.OID())
	})
}

// extensionDependRows shows what installed extensions consist of.
func (s *scan) extensionDependRows() error {
	return eachInstalled(s.Resolver, func(d *catalog.ExtensionDescriptor, e *builtin.Extension) error {
		member := func(class int, object types.OID) error {
			return s.emit(col{"classid", num(class)}, col{"objid", oid(object)}, col{"refclassid", num(classPgExtension)},
				col{"refobjid", oid(uint32(d.ID))}, col{"deptype", letter('e')})
		}
		if e.Name == "plpgsql" {
			if err := member(classPgLanguage, builtin.PlpgsqlOID); err != nil {
				return err
			}
		}
		for _, p := range e.Procs() {
			if err := member(classPgProc, p.OID); err != nil {
				return err
			}
		}
		for _, id := range e.Types {
			if err := member(classPgType, id); err != nil {
				return err
			}
		}
		if e.Name != "unaccent" {
			return nil
		}
		if err := member(classPgTSDict, types.OID(textsearch.DictionaryNamed(e.Name).OID)); err != nil {
			return err
		}
		return member(classPgTSTemplate, types.OID(textsearch.TemplateNamed(e.Name).OID))
	})
}

// extensionComment returns the comment on an extension; false if it has none.
func (o *Objects) extensionComment(id types.OID) (string, bool) {
	if r := o.Resolver(); r != nil {
		for _, d := range r.Extensions().All() {
			if d.ID == uint64(id) {
				return d.Comment, d.Comment != ""
			}
		}
	}
	return "", false
}

// extensionTypeName is the name of a type of an installed extension, with the extension's schema unless the search path has it.
func extensionTypeName(r catalog.Resolver, id types.OID) (string, bool) {
	elem, suffix := types.Type{OID: id, Mod: -1}, ""
	if of := elem.Elem(); of.Valid() {
		elem, suffix = of, "[]"
	}
	for _, d := range r.Extensions().All() {
		e := d.Extension()
		if e == nil || !slices.Contains(e.Types, elem.OID) {
			continue
		}
		name := elem.Info().Name + suffix
		if !visible(r, d.Schema) {
			name = keyword.QuoteIdent(d.Schema) + "." + name
		}
		return name, true
	}
	return "", false
}

// className is the name of an operator class of an index, with the schema of its extension unless the search path has it.
func className(r catalog.Resolver, class string, extension string) string {
	name := keyword.QuoteIdent(class)
	if d := r.Extensions().Named(extension); d != nil && !visible(r, d.Schema) {
		return keyword.QuoteIdent(d.Schema) + "." + name
	}
	return name
}
