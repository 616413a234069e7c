package catalog

import (
	"bytes"
	"cmp"
	"context"
	"hash/fnv"
	"slices"

	"github.com/percodb/percodb/sql/textsearch"
	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types"
)

// TextSearchDescriptor is a text search configuration or dictionary that a user has defined, as of one schema change. Its type tells which:
// regconfig or regdictionary. Immutable once published.
type TextSearchDescriptor struct {
	ID      uint64    // the OID
	Type    types.OID // types.OIDRegconfig, types.OIDRegdictionary
	Schema  string
	Name    string
	Owned          // without privileges
	Comment string `json:",omitempty"`
	// Template and Options are those of a dictionary.
	Template uint32              `json:",omitempty"`
	Options  []textsearch.Option `json:",omitempty"`
	// Mappings are those of a configuration, at most one for a kind of tokens, in order.
	Mappings []TextSearchMapping `json:",omitempty"`
}

// TextSearchMapping says which dictionaries a configuration consults for a kind of tokens, in this order.
type TextSearchMapping struct {
	Kind         int
	Dictionaries []uint32
}

// OID returns the object's number.
func (d *TextSearchDescriptor) OID() types.OID { return types.OID(d.ID) }

// Kind returns the words for the object in messages.
func (d *TextSearchDescriptor) Kind() string { return TextSearchKind(d.Type) }

// TextSearchKind returns the words for the objects of regconfig or regdictionary in messages.
func TextSearchKind(t types.OID) string {
	if t == types.OIDRegconfig {
		return "text search configuration"
	}
	return "text search dictionary"
}

// Clone returns a copy that may be changed.
func (d *TextSearchDescriptor) Clone() *TextSearchDescriptor {
	c := *d
	c.Options, c.Mappings = slices.Clone(d.Options), slices.Clone(d.Mappings)
	for i := range c.Mappings {
		c.Mappings[i].Dictionaries = slices.Clone(c.Mappings[i].Dictionaries)
	}
	return &c
}

// Dictionaries returns those that a configuration consults for a kind of tokens. The slice must not be changed.
func (d *TextSearchDescriptor) Dictionaries(kind int) []uint32 {
	for i := range d.Mappings {
		if d.Mappings[i].Kind == kind {
			return d.Mappings[i].Dictionaries
		}
	}
	return nil
}

// Map gives a configuration dictionaries for a kind of tokens; none: tokens of the kind are not indexed.
func (d *TextSearchDescriptor) Map(kind int, dictionaries []uint32) {
	d.Mappings = slices.DeleteFunc(d.Mappings, func(m TextSearchMapping) bool { return m.Kind == kind })
	if len(dictionaries) > 0 {
		d.Mappings = append(d.Mappings, TextSearchMapping{kind, dictionaries})
	}
	slices.SortFunc(d.Mappings, func(a, b TextSearchMapping) int { return cmp.Compare(a.Kind, b.Kind) })
}

// Uses reports whether a configuration consults a dictionary.
func (d *TextSearchDescriptor) Uses(dictionary uint32) bool {
	return slices.ContainsFunc(d.Mappings, func(m TextSearchMapping) bool { return slices.Contains(m.Dictionaries, dictionary) })
}

// TextSearch are the text search objects that users have defined, as of one schema version. Immutable; safe for concurrent use. It
// implements builtin.TextSearch. nil has none.
type TextSearch struct {
	list           []*TextSearchDescriptor // by OID
	dictionaries   map[uint32]*textsearch.Dictionary
	configurations map[uint32]*textsearch.Configuration
	stored         []byte // the records that they were read from
	version        uint64 // a hash of stored, 0 for none
}

// All lists the objects by OID.
func (s *TextSearch) All() []*TextSearchDescriptor { return s.list }

// ByOID returns the object with an OID, nil if no user has defined it.
func (s *TextSearch) ByOID(oid types.OID) *TextSearchDescriptor {
	for _, d := range s.list {
		if d.OID() == oid {
			return d
		}
	}
	return nil
}

// Find returns the object of a type and name in a schema, nil if there is none.
func (s *TextSearch) Find(t types.OID, schema, name string) *TextSearchDescriptor {
	for _, d := range s.list {
		if d.Type == t && d.Schema == schema && d.Name == name {
			return d
		}
	}
	return nil
}

// Version identifies the set of objects: it changes when one is created, changed or dropped. 0: there are none.
func (s *TextSearch) Version() uint64 { return s.version }

// Configuration returns a configuration, also a delivered one; nil for an unknown OID.
func (s *TextSearch) Configuration(oid uint32) *textsearch.Configuration {
	if s != nil && s.configurations[oid] != nil {
		return s.configurations[oid]
	}
	return textsearch.ConfigurationByOID(oid)
}

// Dictionary returns a dictionary, also a delivered one; nil for an unknown OID.
func (s *TextSearch) Dictionary(oid uint32) *textsearch.Dictionary {
	if s != nil && s.dictionaries[oid] != nil {
		return s.dictionaries[oid]
	}
	return textsearch.DictionaryByOID(oid)
}

// loadTextSearch reads the objects. They are those of last if nothing has changed.
func loadTextSearch(ctx context.Context, r rowReader, of space, last *schemaSnapshot) (*TextSearch, error) {
	s := &TextSearch{}
	err := scanSpan(ctx, r, of.span(wordText), func(key, value []byte) error {
		d := new(TextSearchDescriptor)
		if err := decode(key, value, d); err != nil {
			return err
		}
		s.list = append(s.list, d)
		s.stored = append(append(s.stored, value...), '\n')
		return nil
	})
	if err != nil {
		return nil, err
	}
	if last != nil && bytes.Equal(last.textSearch.stored, s.stored) {
		return last.textSearch, nil
	}
	if len(s.list) > 0 {
		hash := fnv.New64a()
		_, _ = hash.Write(s.stored)
		s.version = hash.Sum64()
	}
	return s, s.build()
}

// build makes the dictionaries and configurations that the descriptors describe.
func (s *TextSearch) build() error {
	s.dictionaries, s.configurations = map[uint32]*textsearch.Dictionary{}, map[uint32]*textsearch.Configuration{}
	for _, d := range s.list {
		if d.Type != types.OIDRegdictionary {
			continue
		}
		built, err := textsearch.NewDictionary(uint32(d.ID), d.Name, textsearch.TemplateByOID(d.Template), d.Options)
		if err != nil {
			return &CorruptionError{Key: idKey(wordText, d.ID), Detail: err.Error()}
		}
		s.dictionaries[built.OID] = built
	}
	for _, d := range s.list {
		if d.Type != types.OIDRegconfig {
			continue
		}
		c := &textsearch.Configuration{OID: uint32(d.ID), Name: d.Name}
		for _, m := range d.Mappings {
			if m.Kind < 1 || m.Kind > len(tsparser.Kinds) {
				continue // of a newer version of the parser
			}
			for _, oid := range m.Dictionaries {
				if consulted := s.Dictionary(oid); consulted != nil {
					c.Dictionaries[m.Kind] = append(c.Dictionaries[m.Kind], consulted)
				}
			}
		}
		s.configurations[c.OID] = c
	}
	return nil
}

// FindTextSearch returns the number of the configuration or dictionary that a name means; schema "" searches the search path. 0: there is
// none.
func FindTextSearch(r Resolver, t types.OID, schema, name string) uint32 {
	path := []string{schema}
	if schema == "" {
		path = Path(r)
	}
	for _, schema := range path {
		if oid := textSearchIn(r, t, schema, name); oid != 0 {
			return oid
		}
	}
	return 0
}

// textSearchIn is FindTextSearch in one schema.
func textSearchIn(r Resolver, t types.OID, schema, name string) uint32 {
	if d := r.TextSearch().Find(t, schema, name); d != nil {
		return uint32(d.ID)
	}
	if t == types.OIDRegconfig {
		if c := textsearch.ConfigurationNamed(name); c != nil && schema == SystemSchema {
			return c.OID
		}
		return 0
	}
	if d := textsearch.DictionaryNamed(name); d != nil && schema == TextSearchSchema(r, d.OID) {
		return d.OID
	}
	return 0
}

// TextSearchSchema returns the schema of a configuration, a dictionary or a template; "" if there is none of the number.
func TextSearchSchema(r Resolver, oid uint32) string {
	if d := r.TextSearch().ByOID(types.OID(oid)); d != nil {
		return d.Schema
	}
	if d := textsearch.DictionaryByOID(oid); d != nil && d.IsOfUnaccent() {
		return unaccentSchema(r)
	} else if d != nil || textsearch.ConfigurationByOID(oid) != nil {
		return SystemSchema
	}
	switch t := textsearch.TemplateByOID(oid); {
	case t == nil:
		return ""
	case t.IsOfUnaccent():
		return unaccentSchema(r)
	}
	return SystemSchema
}

// unaccentSchema returns the schema of the extension unaccent, "" if it is not installed.
func unaccentSchema(r Resolver) string {
	if e := r.Extensions().Named("unaccent"); e != nil {
		return e.Schema
	}
	return ""
}

// PutTextSearch adds an object, or replaces the one with its ID.
func (ch *Change) PutTextSearch(ctx context.Context, d *TextSearchDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.textSearch = true
	return ch.txn.Put(ch.space().idKey(wordText, d.ID), encode(d))
}

// DropTextSearch removes an object, which nothing may use any more.
func (ch *Change) DropTextSearch(ctx context.Context, d *TextSearchDescriptor) error {
	if _, err := ch.bump(ctx); err != nil {
		return err
	}
	ch.wrote.textSearch = true
	return ch.txn.Delete(ch.space().idKey(wordText, d.ID))
}
