package pgcatalog

import (
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
	return nil
}

func tsConfigMapRows(s *scan) error {
	for _, c := range textsearch.Configurations {
		for kind, list := range c.Dictionaries {
			for i, d := range list {
				err := s.emit(col{"mapcfg", oid(c.OID)}, col{"maptokentype", num(kind)}, col{"mapseqno", num(i + 1)}, col{"mapdict", oid(d.OID)})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func tsDictRows(s *scan) error {
	for _, d := range textsearch.Dictionaries {
		err := s.emit(col{"oid", oid(d.OID)}, col{"dictname", text(d.Name)}, col{"dictnamespace", s.systemSchema()}, col{"dictowner", num(ownerOID)},
			col{"dicttemplate", oid(d.Template.OID)}, col{"dictinitoption", optional(d.Options)})
		if err != nil {
			return err
		}
	}
	return nil
}

func tsTemplateRows(s *scan) error {
	for _, t := range textsearch.Templates {
		err := s.emit(col{"oid", oid(t.OID)}, col{"tmplname", text(t.Name)}, col{"tmplnamespace", s.systemSchema()},
			col{"tmplinit", procOID(t.Init)}, col{"tmpllexize", procOID(t.Lexize)})
		if err != nil {
			return err
		}
	}
	return nil
}

func tsParserRows(s *scan) error {
	return s.emit(col{"oid", num(textsearch.ParserOID)}, col{"prsname", text(textsearch.ParserName)}, col{"prsnamespace", s.systemSchema()},
		col{"prsstart", procOID("prsd_start")}, col{"prstoken", procOID("prsd_nexttoken")}, col{"prsend", procOID("prsd_end")},
		col{"prsheadline", procOID("prsd_headline")}, col{"prslextype", procOID("prsd_lextype")})
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
