package pgcatalog

import (
	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/types"
)

// The tables of full-text search.

func tsConfigRows(s *scan) error {
	for _, c := range textsearch.Configurations {
		err := s.emit(col{"oid", oid(c.OID)}, col{"cfgname", text(c.Name)}, col{"cfgnamespace", s.systemSchema()}, col{"cfgowner", num(ownerOID)},
			col{"cfgparser", num(textsearch.ParserOID)})
		if err != nil {
			return err
		}
	}
	return s.userTextSearch(types.OIDRegconfig, func(d *catalog.TextSearchDescriptor) error {
		return s.emit(col{"oid", oid(uint32(d.ID))}, col{"cfgname", text(d.Name)}, col{"cfgnamespace", oid(schemaOID(s.Resolver, d.Schema))},
			col{"cfgowner", oid(d.OwnerOID())}, col{"cfgparser", num(textsearch.ParserOID)})
	})
}

func tsConfigMapRows(s *scan) error {
	mapping := func(configuration uint32, kind, place int, dictionary uint32) error {
		return s.emit(col{"mapcfg", oid(configuration)}, col{"maptokentype", num(kind)}, col{"mapseqno", num(place + 1)}, col{"mapdict", oid(dictionary)})
	}
	for _, c := range textsearch.Configurations {
		for kind, list := range c.Dictionaries {
			for i, d := range list {
				if err := mapping(c.OID, kind, i, d.OID); err != nil {
					return err
				}
			}
		}
	}
	return s.userTextSearch(types.OIDRegconfig, func(d *catalog.TextSearchDescriptor) error {
		for _, m := range d.Mappings {
			for i, dictionary := range m.Dictionaries {
				if err := mapping(uint32(d.ID), m.Kind, i, dictionary); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func tsDictRows(s *scan) error {
	row := func(d *textsearch.Dictionary, schema, owner uint32) error {
		return s.emit(col{"oid", oid(d.OID)}, col{"dictname", text(d.Name)}, col{"dictnamespace", oid(schema)}, col{"dictowner", oid(owner)},
			col{"dicttemplate", oid(d.Template.OID)}, col{"dictinitoption", optional(d.Options)})
	}
	for _, d := range textsearch.Dictionaries {
		if err := row(d, schemaOID(s.Resolver, catalog.SystemSchema), ownerOID); err != nil {
			return err
		}
	}
	if e := s.Extensions().Named("unaccent"); e != nil {
		if err := row(textsearch.DictionaryNamed("unaccent"), schemaOID(s.Resolver, e.Schema), e.OwnerOID()); err != nil {
			return err
		}
	}
	return s.userTextSearch(types.OIDRegdictionary, func(d *catalog.TextSearchDescriptor) error {
		return row(s.TextSearch().Dictionary(uint32(d.ID)), schemaOID(s.Resolver, d.Schema), d.OwnerOID())
	})
}

// userTextSearch calls f with the configurations or dictionaries of users.
func (s *scan) userTextSearch(t types.OID, f func(d *catalog.TextSearchDescriptor) error) error {
	for _, d := range s.TextSearch().All() {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if d.Type != t {
			continue
		}
		if err := f(d); err != nil {
			return err
		}
	}
	return nil
}

func tsTemplateRows(s *scan) error {
	row := func(t *textsearch.Template, schema uint32, init, lexize types.Datum) error {
		return s.emit(col{"oid", oid(t.OID)}, col{"tmplname", text(t.Name)}, col{"tmplnamespace", oid(schema)},
			col{"tmplinit", init}, col{"tmpllexize", lexize})
	}
	for _, t := range textsearch.Templates {
		if err := row(t, schemaOID(s.Resolver, catalog.SystemSchema), procOID(t.Init), procOID(t.Lexize)); err != nil {
			return err
		}
	}
	if e := s.Extensions().Named("unaccent"); e != nil { // Its functions are part of the program.
		return row(textsearch.TemplateNamed("unaccent"), schemaOID(s.Resolver, e.Schema), num(0), num(0))
	}
	return nil
}

func tsParserRows(s *scan) error {
	return s.emit(col{"oid", num(textsearch.ParserOID)}, col{"prsname", text(textsearch.ParserName)}, col{"prsnamespace", s.systemSchema()},
		col{"prsstart", procOID("prsd_start")}, col{"prstoken", procOID("prsd_nexttoken")}, col{"prsend", procOID("prsd_end")},
		col{"prsheadline", procOID("prsd_headline")}, col{"prslextype", procOID("prsd_lextype")})
}

// textSearchName returns the name and the schema of a configuration or a dictionary; schema "" if there is none of the number.
func textSearchName(r catalog.Resolver, t, id types.OID) (schema, name string) {
	if d := r.TextSearch().ByOID(id); d != nil && d.Type == t {
		return d.Schema, d.Name
	}
	if t == types.OIDRegconfig {
		if c := textsearch.ConfigurationByOID(uint32(id)); c != nil {
			return catalog.SystemSchema, c.Name
		}
		return "", ""
	}
	if d := textsearch.DictionaryByOID(uint32(id)); d != nil {
		return catalog.TextSearchSchema(r, d.OID), d.Name
	}
	return "", ""
}

// TextSearchVisible implements builtin.Catalog.
func (o *Objects) TextSearchVisible(t, id types.OID) (visible, ok bool) {
	r := o.Resolver()
	if r == nil {
		return false, false
	}
	schema, name := textSearchName(r, t, id)
	if schema == "" {
		return false, false
	}
	return catalog.FindTextSearch(r, t, "", name) == uint32(id), true
}

// TextSearchName implements types.Names.
func (o *Objects) TextSearchName(t, id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	schema, name := textSearchName(r, t, id)
	if schema == "" {
		return "", false
	}
	quoted := keyword.QuoteIdent(name)
	if catalog.FindTextSearch(r, t, "", name) != uint32(id) {
		quoted = keyword.QuoteIdent(schema) + "." + quoted
	}
	return quoted, true
}

// QualifiedTextSearch is TextSearchName with the schema in any case.
func (o *Objects) QualifiedTextSearch(t, id types.OID) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	schema, name := textSearchName(r, t, id)
	return keyword.QuoteIdent(schema) + "." + keyword.QuoteIdent(name), schema != ""
}

// TextSearchOID implements types.Names.
func (o *Objects) TextSearchOID(t types.OID, text string) (types.OID, error) {
	schema, name, err := SplitName(text)
	if err != nil {
		return 0, err
	}
	if err := o.schemaExists(schema); err != nil {
		return 0, err
	}
	if r := o.Resolver(); r != nil {
		if found := catalog.FindTextSearch(r, t, schema, name); found != 0 {
			return types.OID(found), nil
		}
	}
	return 0, pgerror.New(pgerror.UndefinedObject, "%s \"%s\" does not exist", catalog.TextSearchKind(t), text)
}

// textSearchDescriptions calls f with the comments of the objects of full-text search that every database has.
func textSearchDescriptions(f func(class, object uint32, comment string) error) error {
	if err := f(classPgTSParser, textsearch.ParserOID, "default word parser"); err != nil {
		return err
	}
	for _, c := range textsearch.Configurations {
		if err := f(classPgTSConfig, c.OID, c.Comment()); err != nil {
			return err
		}
	}
	for _, d := range textsearch.Dictionaries {
		if err := f(classPgTSDict, d.OID, d.Comment()); err != nil {
			return err
		}
	}
	for _, t := range textsearch.Templates {
		if err := f(classPgTSTemplate, t.OID, t.Comment); err != nil {
			return err
		}
	}
	return nil
}

// textSearchClasses are the tables that textSearchDescriptions describes objects of.
var textSearchClasses = map[string]uint32{"pg_ts_config": classPgTSConfig, "pg_ts_dict": classPgTSDict, "pg_ts_parser": classPgTSParser, "pg_ts_template": classPgTSTemplate}

// userTextSearchComment returns the comment of a text search object of a user; class "": of any kind.
func (o *Objects) userTextSearchComment(id types.OID, class string) (string, bool) {
	r := o.Resolver()
	if r == nil {
		return "", false
	}
	d := r.TextSearch().ByOID(id)
	if d == nil {
		return "", false
	}
	of := "pg_ts_config"
	if d.Type == types.OIDRegdictionary {
		of = "pg_ts_dict"
	}
	return d.Comment, class == "" || class == of
}

// textSearchComment returns the comment of an object of full-text search; class "": of any kind.
func textSearchComment(id types.OID, class string) (comment string, ok bool) {
	if class != "" && textSearchClasses[class] == 0 {
		return "", false
	}
	_ = textSearchDescriptions(func(of, object uint32, c string) error { // It returns only errors of the function.
		if types.OID(object) == id && (class == "" || of == textSearchClasses[class]) {
			comment, ok = c, true
		}
		return nil
	})
	return comment, ok
}
