package textsearch

import (
	"strings"
	"unicode"

	"github.com/percodb/percodb/sql/snowball"
)

// Template is a kind of dictionaries, a row of pg_ts_template.
type Template struct {
	OID     uint32
	Name    string
	Init    string // the functions that PostgreSQL calls
	Lexize  string
	Comment string
}

// The templates of which dictionaries are made here.
var (
	SimpleTemplate   = &Template{3727, "simple", "dsimple_init", "dsimple_lexize", "simple dictionary: just lower case and check for stopword"}
	SnowballTemplate = &Template{13150, "snowball", "dsnowball_init", "dsnowball_lexize", "snowball stemmer"}
)

// Templates are sorted by name. The others than SimpleTemplate and SnowballTemplate read files of the server.
var Templates = []*Template{
	{3733, "ispell", "dispell_init", "dispell_lexize", "ispell dictionary"},
	SimpleTemplate,
	SnowballTemplate,
	{3730, "synonym", "dsynonym_init", "dsynonym_lexize", "synonym dictionary: replace word by its synonym"},
	{3742, "thesaurus", "thesaurus_init", "thesaurus_lexize", "thesaurus dictionary: phrase by phrase substitution"},
}

// TemplateByOID returns nil for an unknown OID.
func TemplateByOID(oid uint32) *Template {
	for _, t := range Templates {
		if t.OID == oid {
			return t
		}
	}
	if oid == unaccentDictionary.Template.OID {
		return unaccentDictionary.Template
	}
	return nil
}

// Dictionary is a row of pg_ts_dict: it turns words into lexemes.
type Dictionary struct {
	OID      uint32
	Name     string
	Template *Template
	Options  string // as ALTER TEXT SEARCH DICTIONARY takes them

	language  string // of the stemmer; "": words are only put in lower case
	stopWords string // the list of this name; "": none
	accept    bool   // it knows all words; otherwise only stop words
}

// Comment describes a dictionary that every database has.
func (d *Dictionary) Comment() string {
	if d.language == "" {
		return d.Template.Comment
	}
	return "snowball stemmer for " + d.language + " language"
}

// filters reports whether the dictionaries after this one get what it makes of a word.
func (d *Dictionary) filters() bool { return d.Template.IsOfUnaccent() }

// Lexize returns the lexemes of a word, none for a stop word; false: the dictionary does not know it.
func (d *Dictionary) Lexize(word string) (lexemes []string, known bool) {
	if d.filters() {
		return lexizeUnaccent(word)
	}
	lower := strings.Map(unicode.ToLower, word)
	if d.language != "" && len(word) > snowball.MaxBytes {
		return []string{lower}, true
	}
	if lower == "" || snowball.IsStopWord(d.stopWords, lower) {
		return nil, true
	}
	if !d.accept {
		return nil, false
	}
	return []string{snowball.Stem(d.language, lower)}, true
}
