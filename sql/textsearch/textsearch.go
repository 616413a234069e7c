// Package textsearch turns documents into vectors and texts into queries, by configurations: which dictionary takes which
// tokens of the parser. There are the configurations and dictionaries that PostgreSQL 15 is delivered with, with its OIDs, and those that users
// define (NewDictionary).
package textsearch

import (
	"github.com/percodb/percodb/sql/snowball"
	"github.com/percodb/percodb/sql/tsparser"
)

// ParserOID and ParserName are those of the only parser, a row of pg_ts_parser.
const (
	ParserOID  = 3722
	ParserName = "default"
)

// Configuration is a row of pg_ts_config: it selects the dictionaries of tokens.
type Configuration struct {
	OID  uint32
	Name string
	// Dictionaries are, by kind of token, those that are consulted in this order until one knows the token; none: tokens of
	// the kind are not indexed.
	Dictionaries [len(tsparser.Kinds) + 1][]*Dictionary
}

// Comment describes a configuration that every database has.
func (c *Configuration) Comment() string {
	if c.OID == simpleConfiguration {
		return "simple configuration"
	}
	return "configuration for " + c.Name + " language"
}

const (
	simpleConfiguration = 3748
	simpleDictionary    = 3765
	firstStemmer        = 13151 // the dictionary of the first language; its configuration follows
)

var languages = []string{"arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
	"hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian", "russian",
	"serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"}

// Configurations and Dictionaries are sorted by OID.
var Configurations, Dictionaries = delivered()

// delivered returns the configurations and dictionaries that every database has.
func delivered() (configurations []*Configuration, dictionaries []*Dictionary) {
	simple := &Dictionary{OID: simpleDictionary, Name: "simple", Template: SimpleTemplate, accept: true}
	dictionaries = append(dictionaries, simple)
	configurations = append(configurations, configurationOf(simpleConfiguration, "simple", simple, simple, simple))
	stemmers := map[string]*Dictionary{}
	for i, l := range languages {
		d := &Dictionary{OID: uint32(firstStemmer + 2*i), Name: l + "_stem", Template: SnowballTemplate, language: l, accept: true}
		d.Options = "language = '" + l + "'"
		if snowball.HasStopWords(l) {
			d.stopWords = l
			d.Options += ", stopwords = '" + l + "'"
		}
		stemmers[l] = d
		dictionaries = append(dictionaries, d)
	}
	for i, l := range languages {
		ascii := stemmers[l]
		if l == "hindi" || l == "russian" {
			ascii = stemmers["english"] // Words of these languages are not of ASCII letters.
		}
		configurations = append(configurations, configurationOf(uint32(firstStemmer+2*i+1), l, simple, ascii, stemmers[l]))
	}
	return configurations, dictionaries
}

// configurationOf returns a configuration with one dictionary for words of ASCII letters, one for other words, one for other tokens.
func configurationOf(oid uint32, name string, other, ascii, word *Dictionary) *Configuration {
	c := &Configuration{OID: oid, Name: name}
	for k := range c.Dictionaries {
		d := other
		switch tsparser.Kind(k) {
		case tsparser.AsciiWord, tsparser.AsciiHWord, tsparser.HWordAsciiPart:
			d = ascii
		case tsparser.Word, tsparser.HWord, tsparser.HWordPart:
			d = word
		case 0, tsparser.Blank, tsparser.Tag, tsparser.Protocol, tsparser.Entity:
			continue
		}
		c.Dictionaries[k] = []*Dictionary{d}
	}
	return c
}

// ConfigurationNamed returns the configuration of a name without schema, nil if there is none.
func ConfigurationNamed(name string) *Configuration {
	for _, x := range Configurations {
		if x.Name == name {
			return x
		}
	}
	return nil
}

// DictionaryNamed returns the dictionary of a name without schema, nil if there is none.
func DictionaryNamed(name string) *Dictionary {
	for _, x := range Dictionaries {
		if x.Name == name {
			return x
		}
	}
	if name == unaccentDictionary.Name {
		return unaccentDictionary
	}
	return nil
}

// ConfigurationByOID returns nil for an unknown OID.
func ConfigurationByOID(oid uint32) *Configuration {
	for _, x := range Configurations {
		if x.OID == oid {
			return x
		}
	}
	return nil
}

// DictionaryByOID returns nil for an unknown OID.
func DictionaryByOID(oid uint32) *Dictionary {
	for _, x := range Dictionaries {
		if x.OID == oid {
			return x
		}
	}
	if oid == unaccentDictionary.OID {
		return unaccentDictionary
	}
	return nil
}
